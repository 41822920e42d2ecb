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
    The tables and figures of papers, ours beside theirs.
`selftest`
    Stress scenes, and whether each holds what it must.

Calibration uses comparison and the engine of sweeps, material_fit an estimate of calibration, and reproduction uses problems; the
others stand alone.
"""
