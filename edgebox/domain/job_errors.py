"""Errors of jobs with model families: why one is not measured, imported or removed."""

from edgebox.domain.errors import EdgeboxError


class CamerasConnectedError(EdgeboxError):
    """Measuring would take the executor from connected cameras."""

    http_status = 409
    code = "cameras_connected"
    title = "Cameras are served"


class MemoryLimitedError(EdgeboxError):
    """A family with limited memory cannot be measured while the box serves."""

    http_status = 409
    code = "memory_limited"
    title = "Models share a limited memory"


class FamilyExistsError(EdgeboxError):
    """A family of this name exists."""

    http_status = 409
    code = "family_exists"
    title = "There is a model family of this name"


class FamilyInUseError(EdgeboxError):
    """A family cannot be removed or replaced as the default; the message says what uses it."""

    http_status = 409
    code = "family_in_use"
    title = "The model family is in use"


class NoImportsError(EdgeboxError):
    """The packages for importing are not installed."""

    http_status = 501
    code = "no_imports"
    title = "This box cannot import models"


class ImportRefusedError(EdgeboxError):
    """A model file could not be imported; the message says why."""

    http_status = 422
    code = "import_refused"
    title = "The file was not imported"
