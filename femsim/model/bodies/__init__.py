"""Bodies: constant data plus methods that read a state; each fills its own diagonal block of A and its rows of b.

``body``, ``body_defaults``, ``outputs``
    What the system asks of a body, the answers that suit most, and what frames, sensors and the run folder ask;
    ``deforming``: the surfaces and strands by which bodies have contact with each other.
``soft``, ``soft_bodies``
    What soft bodies share; ``corotational`` (linear elements, the default; ``corotational_tangent_kernels`` are its second
    derivatives) and ``hyperelastic`` (any law, linear or quadratic elements) are its materials, between which the other
    chooses, and ``mixture`` which material each element has; ``viscous`` are Prony terms beside them, ``soft_output`` what is
    shown, ``node_kernels`` means at nodes, ``block_pattern`` where the entries of A are.
``rod``, ``rod_end``
    Cosserat rods, their energies and outputs; what happens at their ends. ``rod_make`` is what they are made of, ``rod_shape``
    checks their shape at the start; ``rod_step`` are their forces in a step, with ``rod_joints``, what strains them, and
    ``rod_frames``, what holds their ends; ``rod_output`` is what is shown.
``links``, ``articulated``, ``tree``, ``tree_joints``
    Trees of rigid links: what they share; rigid bodies and grippers, whose joints only slide; robots; their joints and what
    drives them. ``tree_step_kernels`` are the equations of a step of robots, ``rigid_kernels`` the velocity of a base at its end
    and the free rotation of a rigid body.
``kinds``
    Bodies by their class, for the few who work on one kind alone.
``momentum_kernels``, ``corotational_momentum_kernels``, ``rod_momentum_kernels``
    The energy-momentum step of soft bodies, of linear elements in chunks, and of rods, whose derivative is in
    ``rod_slope_kernels``; ``calming`` takes from it what is too fast for a step, and ``evenness`` says where its damping acts.

Compiled code of NAME is in ``NAME_kernels``; vectors, matrices and rotations for all of it in ``rotation_kernels``, elastic
laws in ``law_kernels``.
To add a kind of body, write its file and give :class:`~femsim.scene.scene.Scene` an ``add_...`` for it.
"""
