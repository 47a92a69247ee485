"""Owns the errors that cross a boundary: each says what is wrong and what to do about it."""


class EdgeboxError(Exception):
    """An error a user can act on; `str(error)` is the whole message."""

    http_status = 500
    code = "internal"
    title = "The box failed on this request"
    """The type of the error, the same at every occurrence."""
    exit_code = 1
    """The exit code of a command that ends with this error."""


class InvalidInputError(EdgeboxError):
    """The caller sent something that cannot be used."""

    http_status = 400
    code = "invalid"
    title = "The request cannot be used as it is"


class FileAccessError(InvalidInputError):
    """A file or folder that the caller named cannot be opened now; it may be there later."""


class UnknownNameError(EdgeboxError):
    """The caller named something this box does not have."""

    http_status = 404
    code = "unknown"
    title = "The box has nothing of that name"


class TooLargeError(EdgeboxError):
    """The caller sent more than the box accepts."""

    http_status = 413
    code = "too_large"
    title = "The request is larger than the box accepts"


class ConfigError(EdgeboxError):
    """The configuration, an option that takes its place or a file that it names is wrong.

    The message lists every error with its key path.
    """

    code = "config"
    title = "The configuration is wrong"
    exit_code = 78
    """EX_CONFIG of sysexits.h: another start cannot succeed before a person corrects it."""


class MissingRuntimeError(EdgeboxError):
    """ONNX Runtime is not installed; the message says how to install it."""

    code = "runtime"
    title = "ONNX Runtime is not installed"
    exit_code = 78
    """As for a wrong configuration: another start cannot succeed."""


class ModelError(EdgeboxError):
    """A model family's files are missing, corrupt or not what its manifest says."""

    code = "model"
    title = "A model family cannot be used"


class WedgedError(EdgeboxError):
    """No executor is left, and this process can open none; another process may be able to."""

    code = "wedged"
    title = "No executor is left"
    exit_code = 75
    """EX_TEMPFAIL of sysexits.h: another start may well succeed."""


class StorageError(EdgeboxError):
    """The database cannot be used; the message says what to do."""

    code = "storage"
    title = "The database cannot be used"


class KeptFileError(StorageError):
    """A file that holds tokens or passwords cannot be used; the message says what to do."""

    title = "A file with tokens or passwords cannot be used"


class InvariantViolation(EdgeboxError):  # noqa: N818 - the design's name
    """The core's state is inconsistent: a defect of edgebox, never of its input."""

    code = "invariant"
    title = "The box's state is inconsistent, which is a defect of edgebox"

    def __init__(self, message: str, tail: tuple[str, ...] = ()) -> None:
        """Name the contradiction; `tail` is the end of the journal, a line per call."""
        super().__init__(message)
        self.tail = tail
