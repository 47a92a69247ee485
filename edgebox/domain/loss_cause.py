"""Why an executor is taken out of service."""

from enum import StrEnum


class LossCause(StrEnum):
    """Why an executor was lost."""

    HUNG = "hung"
    """Its batch or sample did not come back within its limit."""
    FAILING = "failing"
    """Too many batches in a row failed."""
    REFUSING = "refusing"
    """Its server refused too many batches in a row because it has too much to do."""
    LOADING = "loading"
    """Its weights were not loaded within the limit."""
    OPENING = "opening"
    """It was lost before, and opening it again did not come back."""
    GONE = "gone"
    """What runs its batches has ended: a process elsewhere, or its node."""
