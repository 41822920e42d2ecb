"""The one exception of this room."""


class MeshError(ValueError):
    """A mesh, mesh file or mesh parameter that cannot be used; the message says what to do."""
