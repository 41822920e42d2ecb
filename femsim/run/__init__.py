"""A simulation from start to end, and the files it writes.

`simulate`
    `simulate(scene)`: the loop, the run folder, the result as a `Run`.
`recorder`
    The tables `steps.csv` and `sensors.csv`, a row per step.
`gauges`, `instruments`
    What sensors read beside whole wrenches; what an instrument shows of a wrench.
`frames`
    The series of frames that ParaView opens.
"""
