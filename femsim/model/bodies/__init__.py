"""Bodies: constant data plus methods that read a state; each fills its own diagonal block of A and its rows of b.

``body`` says what the system asks of a body, ``soft`` is co-rotational FEM (kernels in ``soft_kernels``), ``rod`` Cosserat rods
(kernels in ``rod_kernels``), ``articulated`` rigid bodies and grippers. To add a kind of body, write its file and give
:class:`~femsim.scene.scene.Scene` an ``add_...`` for it.
"""
