"""The description of an experiment, as users write it.

`scene`
    `Scene` with its calls (`add_soft`, `add_rod`, `drive`, `sensor` ...): it checks every value once, here.
`scene_file`
    Scene files: the function `build`, its parameters with their units, the scenes that come with femsim.
`reading`
    What an instrument at a sensor shows of its wrench.
"""
