"""Finds the names of a model's classes.

Pure but for the file of names, which is read as text.
"""

from collections.abc import Sequence
from pathlib import Path

from edgebox.domain.errors import ModelError
from edgebox.inference.family import EMBEDDING_LABEL
from edgebox.inference.importing.files import LABELS_MAX, unique_names
from edgebox.inference.importing.matching import Match
from edgebox.inference.importing.reading import Decoding
from edgebox.vision.coco import COCO80, COCO80_IDS

_FILE_BYTES_MAX = 4 << 20
_COCO_COLUMNS = 91


def read_labels(text: str) -> tuple[str, ...]:
    """Return the names behind "coco80" or in a file, one per line.

    Raises:
        ModelError: the file cannot be read or has no names.
    """
    if text == "coco80":
        return COCO80
    path = Path(text)
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            raise ModelError(f"{path}: is too large for a file of label names")
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ModelError(
            f"{path}: there is no such file; labels are a file with a name per line, or coco80"
        ) from None
    except UnicodeDecodeError:
        raise ModelError(f"{path}: is not a text file in UTF-8") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or len(lines) > LABELS_MAX:
        raise ModelError(f"{path}: has {len(lines)} names; a label per line is needed")
    return unique_names(lines)


def scored_classes(found: Match) -> int | None:
    """Return how many classes a model scores, without "nothing"; None: rows have their label.

    Embeddings are of one class.
    """
    if found.layout.task == "embed":
        return 1
    if found.classes is None or found.layout.head.pick == "given":
        return None
    return found.classes - found.layout.head.background


def decoding_for(found: Match, labels: Sequence[str] | None) -> Decoding | None:
    """Return how to read a model's outputs with these labels; None: their number does not fit.

    Args:
        found: the layout.
        labels: None: one generated name per class.
    """
    head, classes = found.layout.head, scored_classes(found)
    if classes is None:
        return Decoding(head, None, len(labels) if labels is not None else LABELS_MAX)
    if labels is None or len(labels) == classes:
        return Decoding(head, found.classes, classes)
    if classes == _COCO_COLUMNS and tuple(labels) == COCO80:
        return Decoding(head, found.classes, len(labels), COCO80_IDS)
    if head.activation == "sigmoid" and len(labels) == classes - 1:
        return Decoding(head, found.classes, len(labels))
    return None


def labels_for(found: Match, given: Sequence[str] | None, seen: int) -> tuple[tuple[str, ...], str]:
    """Return the label names and, where they are an assumption, a remark.

    Args:
        found: the layout.
        given: names that came with the file or the command.
        seen: the largest label found on the pictures of the trial, or -1.

    Raises:
        ModelError: there are more or fewer names than classes.
    """
    classes = scored_classes(found)
    if given is None and found.layout.task == "embed":
        return (EMBEDDING_LABEL,), ""
    if given is not None:
        if decoding_for(found, given) is None:
            raise ModelError(
                f"there are {len(given)} labels, but the model scores {classes} classes"
            )
        if classes is None and seen >= len(given):
            raise ModelError(f"there are {len(given)} labels, but the model found the label {seen}")
        return tuple(given), ""
    if classes in (len(COCO80), _COCO_COLUMNS) or (classes is None and seen < len(COCO80)):
        count = "its labels" if classes is None else f"its {classes} classes"
        return COCO80, f"{count} are taken to be COCO's; --labels names others"
    if classes is None:
        raise ModelError(f"the model found the label {seen}, so it needs --labels FILE")
    names = tuple(f"class {number}" for number in range(classes))
    return names, f"its {classes} classes have no names; --labels FILE gives them some"
