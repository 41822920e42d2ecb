"""The exceptions of the contact room."""


class ContactError(ValueError):
    """Bad input to the contact room; names the field, the value, what is allowed and what to do."""


class NotPositiveError(ContactError):
    """A matrix that must be positive definite is not: no solver can take the problem."""


class NotApplicableError(ContactError):
    """A good problem of a kind that a solver cannot take; another one can."""
