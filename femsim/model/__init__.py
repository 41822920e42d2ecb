"""What a scene is made of: bodies, and what ties and moves them. Nothing here knows of scenes, steps or files.

`bodies`
    Soft bodies, rods, rigid bodies and grippers: constant data, and methods that read a state.
`frames`
    Frames that bodies carry and that hold the ends of rods.
`parts`, `fields`
    What of a body comes into contact and is sensed; the fields of the frames, each declared once.
`couplings`, `actuators`
    Forces between bodies that are implicit in the system: rod ends that bodies hold, chambers under pressure, tendons.
`drives`, `holds`
    Motions and profiles over time; nodes of soft bodies that follow a motion.
`paths`, `path_files`
    Paths that robots write: checked poses over time that become a motion; the files that hold them.
`contact_rules`
    Friction that differs by direction; points and parts without contact.
`solids`
    Mass, inertia and pictures of shapes.
"""
