"""Contact problems from files and scenes.

`solve`
    `solve_problem`: a file in, the answer of a solver and its true residuals out.
`bench`
    `bench`: solvers side by side on the same problems.
"""
