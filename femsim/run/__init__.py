"""A simulation from start to end, and the files it writes.

`simulate`
    `simulate(scene)`: the loop, the run folder, the result as a `Run`.
`simulation`, `saved`, `recording`
    `Simulation`: a scene that is stepped from outside; where it stood, to go back; the run that it records.
`play`, `hand`
    `play`: a scene that goes on in the browser, where the mouse pulls its bodies; how it pulls.
`loop`, `turn`, `progress`, `patience`
    The steps of a run, whose turn it is to move bodies that are shared, its progress bar, and steps that take long.
`folder`, `info`, `run_file`
    The run folder and `run.json`.
`checkpoint`, `resume`, `repair`
    All that a run needs to go on, runs that go on, run folders that are mended.
`health`, `verdict`
    The health of a run, watched step by step: good, doubtful or wrong, and why.
`result`, `showing`, `loading`
    `Run`: tables, readings of sensors, status, summary; what it shows of itself; one that is read from its folder.
`recorder`, `columns`
    The tables `steps.csv` and `sensors.csv`, a row per step; the columns of `steps.csv`, each declared once.
`sensors`, `selection`, `instruments`
    How each kind of sensor is read; which contacts it counts; what an instrument shows of a wrench.
`frames`
    The series of frames that ParaView opens.
"""
