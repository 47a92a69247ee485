"""Says when something that is done every so many minutes is due."""


class MinutePeriod:
    """A number of minutes, and how many of them have passed."""

    def __init__(self, minutes: int) -> None:
        """Begin a period, at least a minute long."""
        self._minutes = minutes
        self._passed = 0

    def end_minute(self, *, early: bool = False) -> bool:
        """Count a minute; return whether the period ends with it, and begin the next one then.

        Args:
            early: it ends now, however long it has lasted.
        """
        self._passed += 1
        ends = early or self._passed >= self._minutes
        if ends:
            self._passed = 0
        return ends
