"""Contact problems from files and scenes, solved and compared.

`solve`
    `solve_problem` reads an FCLib file, solves it and judges the answer by its true residuals: a `SolvedProblem`.
`bench`
    `bench` times all solvers on the same problems and compares residuals, errors and convergence: one `BenchRow` for each.
    `arena` names solvers and sets on one line; `profiles` and `pages` are what is shown of the rows, `traits` says of which
    kind a problem is.
`redraw`
    `redraw_bench` draws the page and the profiles again from the table of a benchmark.
`sets`, `assemblies`
    Problem sets that programs write, of any size, from bodies, contacts and joints put together by hand.

Statuses are those of ``femsim.base.status``. In a benchmark a solver can also be "refused" (it raised an error) or "not
applicable".
"""
