"""The one exception of this room."""


class MaterialError(ValueError):
    """A material value, card, name or friction pair that cannot be used; the message says what to do."""
