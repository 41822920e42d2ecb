"""The description of an experiment, as users write it.

`scene`
    `Scene` with its calls (`add_soft`, `add_rod`, `drive`, `sensor` ...); `contents` is the data that they fill.
`building`, `driving`, `sensing`, `checks`
    The work behind the calls: bodies and obstacles; motions, holds, actuators, friction; sensors. Every value is checked here.
`sensor_kinds`
    The kinds of sensors, each declared once: columns, units, text, limits.
`scene_file`
    Scene files: the function `build`, its parameters with their units, the scenes that come with femsim.
`reading`
    What an instrument at a sensor shows of its wrench.
"""
