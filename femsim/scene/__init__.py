"""The description of an experiment, as users write it.

`scene`
    `Scene` with its calls, in `body_calls` (`add_soft`, `add_rod` ...), `motion_calls` (`drive`, `join` ...) and `contact_calls`
    (`set_friction` ...); `contents` is the data that they fill.
`building`, `driving`, `sensing`, `checks`
    The work behind the calls: bodies and obstacles; motions, holds, actuators; sensors. Every value is checked here.
`joining`, `robots`, `joint_driving`
    The same of joints between bodies, of robots, and of their driven joints.
`frictions`, `pairs`
    What statements about friction and restitution say of parts; the calls about pairs: friction, no contact, sensors.
`own_contact`
    Which links of one robot may have contact with each other.
`settings`, `described`
    What the settings may be; what a simulation was made of, to tell when the scene is changed later.
`plausible`, `health_bounds`
    Notes on values of the wrong order; the bounds of the health verdict.
`sensor_kinds`
    The kinds of sensors, each declared once: columns, units, text, limits.
`scene_file`
    Scene files: the function `build`, its parameters with their units, the scenes that come with femsim.
`reading`
    What an instrument at a sensor shows of its wrench.
"""
