"""Owns the errors that cross a boundary: each says what is wrong and what to do about it."""


class EdgeboxError(Exception):
    """An error a user can act on; `str(error)` is the whole message."""

    http_status = 500
    code = "internal"


class InvalidInputError(EdgeboxError):
    """The caller sent something that cannot be used."""

    http_status = 400
    code = "invalid"


class TooLargeError(EdgeboxError):
    """The caller sent more than the box accepts."""

    http_status = 413
    code = "too_large"


class ConfigError(EdgeboxError):
    """The configuration is wrong; the message lists every error with its key path."""

    code = "config"


class ModelError(EdgeboxError):
    """A model family's files are missing, corrupt or not what its manifest says."""

    code = "model"


class StorageError(EdgeboxError):
    """The database cannot be used; the message says what to do."""

    code = "storage"


class InvariantViolation(EdgeboxError):  # noqa: N818 - the design's name
    """The core's state contradicts itself: a defect of edgebox, never of its input."""

    code = "invariant"

    def __init__(self, message: str, tail: tuple[str, ...] = ()) -> None:
        """Say what contradicts what; `tail` is the end of the journal, a line per call."""
        super().__init__(message)
        self.tail = tail
