"""Studies: what one does with many runs, or with a run and an experiment. The simulation needs none of them.

`sweeps`
    Many runs over parameters, on all cores or a cluster, and how sensitive results are to each parameter.
`comparison`
    A run beside the log of an experiment: how well they agree.
`calibration`
    Parameters of a scene found from logs, with intervals.
`material_fit`
    Elastic laws fitted to tensile tests.
`problems`
    Contact problems from files and scenes: solved, and solvers compared on them.
`reproduction`
    The tables and figures of papers/001, ours beside the paper's.
`selftest`
    Stress scenes, and whether each holds what it must.

Comparison stands alone; calibration uses comparison and the engine of sweeps; the others do not use each other.
"""
