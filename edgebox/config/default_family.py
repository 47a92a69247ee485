"""The default model family that `edgebox models default` stores, beside the imported families."""

from pathlib import Path

from edgebox.domain.errors import ModelError
from edgebox.storage.whole_file import write_whole

FILE_NAME = "default-family"


def stored_default(models: Path) -> str | None:
    """Return the name that was stored in the folder of imported families; None: none was."""
    try:
        return (models / FILE_NAME).read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def store_default(models: Path, name: str) -> None:
    """Store a default family; it counts where the configuration names none.

    Raises:
        ModelError: it cannot be written.
    """
    try:
        models.mkdir(parents=True, exist_ok=True)
        write_whole(models / FILE_NAME, f"{name}\n".encode())
    except OSError as error:
        raise ModelError(f"{models / FILE_NAME}: cannot be written: {error.strerror}") from None
