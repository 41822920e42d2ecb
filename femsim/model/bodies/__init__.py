"""Bodies: constant data plus methods that read a state; each fills its own diagonal block of A and its rows of b.

``body`` says what the system asks of a body. ``soft`` is what soft bodies share, ``corotational`` (linear elements, the default)
and ``hyperelastic`` (any law, linear or quadratic elements) are its materials, ``soft_bodies`` chooses between them. ``rod`` is
Cosserat rods, their shape at the start checked in ``rod_shape``; ``articulated`` is rigid bodies and grippers. Compiled code is
in files ``..._kernels``; vectors, matrices and rotations for all of it in ``rotation_kernels``, elastic laws in ``law_kernels``.
To add a kind of body, write its file and give :class:`~femsim.scene.scene.Scene` an ``add_...`` for it.
"""
