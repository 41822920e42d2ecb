"""The exception of the contact room."""


class ContactError(ValueError):
    """Bad input to the contact room; names the field, the value, what is allowed and what to do."""
