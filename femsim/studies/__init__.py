"""What is done with many runs or beside a run; nothing in the simulation needs it.

`sweeps`
    Many runs over parameters, on all cores or a cluster; sensitivities.
`comparison`
    A run beside the log of an experiment.
`calibration`
    Parameters of a scene from logs, with intervals.
`material_fit`
    Elastic laws fitted to tensile tests.
`problems`
    Contact problems from files: solved, and solvers compared on them.
`reproduction`
    The tables and figures of papers/001, ours beside the paper's.
"""
