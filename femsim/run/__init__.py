"""A simulation from start to end, and the files it writes.

`simulate`
    `simulate(scene)`: the loop, the run folder, the result as a `Run`.
`simulation`, `saved`, `recording`
    `Simulation`: a scene that is stepped from outside; where it stood, to go back; the run that it records.
`loop`, `progress`, `folder`, `info`
    The steps of a run and its progress bar; the run folder and `run.json`.
`result`
    `Run`: tables, readings of sensors, status, summary.
`recorder`, `columns`
    The tables `steps.csv` and `sensors.csv`, a row per step; the columns of `steps.csv`, each declared once.
`sensors`, `selection`, `instruments`
    How each kind of sensor is read; which contacts it counts; what an instrument shows of a wrench.
`frames`
    The series of frames that ParaView opens.
"""
