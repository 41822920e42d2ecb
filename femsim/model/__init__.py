"""What a scene is made of: bodies, and what ties and moves them. Nothing here knows of scenes, steps or files.

`bodies`
    Soft bodies, rods, rigid bodies and grippers: constant data, and methods that read a state.
`frames`
    Frames that bodies carry and that hold the ends of rods.
`parts`, `faces`, `fields`
    What of a body comes into contact and is sensed; corners, edges and faces of rigid parts; the fields of the frames, each
    declared once.
`couplings`, `actuators`, `swings`
    Forces between bodies that are implicit in the system: rod ends that bodies hold, chambers under pressure, tendons; what
    keeps stiff fluids and cables from turning round in each step.
`joined`, `joints`, `joint_friction`, `joint_springs`, `kept_shape`
    Welds, hinges, sliders, balls and glue between bodies: rows of the contact problem that hold two frames together; dry friction
    of the joints of robots, a row as well; nodes of a soft body that move together (``patch_kernels``, with their frame).
`drives`, `holds`, `compliance`, `commands`
    Motions and profiles over time (``profile_kernels`` read many at once); nodes of soft bodies that follow a motion; hands and
    held nodes that give way; functions of time that somebody may take over between two steps.
`robots`, `robot_checks`, `robot_files`, `urdf`, `mjcf`
    Links and joints of a robot by name, checked, put in order as a tree; files that describe one, and what their readers share
    (``mjcf_elements``, single elements of MJCF; ``mjcf_words``, the attributes that it knows; ``mjcf_assets``, its meshes;
    ``mjcf_meshes``, their mass; ``mjcf_includes``, files within files; ``mjcf_attach``, models of
    other files; ``mjcf_replicate``, copies; ``mjcf_springs``, of tendons; ``mjcf_left``, what is left to the scene, in words).
`paths`, `path_files`, `robot_paths`
    Paths that robots write: checked poses over time that become a motion; the files that hold them; paths of joints, found by
    inverse kinematics or read.
`contact_rules`
    Friction that differs by direction; points and parts without contact.
`solids`
    Mass, inertia and pictures of shapes.
"""
