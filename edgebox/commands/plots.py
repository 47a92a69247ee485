"""Decides whether a plot can be drawn, before anything runs for it, and writes it.

matplotlib is an extra.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgebox.domain.errors import EdgeboxError, InvalidInputError


def figures_for(path: Path) -> Callable[[float, float], Any]:
    """Return what makes a matplotlib figure of a width and height in inches.

    Raises:
        EdgeboxError: the extra is missing, or the file is of another kind.
    """
    if path.suffix not in (".png", ".svg"):
        raise InvalidInputError(f"{path}: a plot is a .png or .svg file")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise EdgeboxError(
            "drawing needs matplotlib, which is not installed: pip install 'edgebox[plot]'"
        ) from None
    return lambda width, height: Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure to its file.

    Raises:
        InvalidInputError: it cannot be written.
    """
    try:
        figure.savefig(path)
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written: {error.strerror}") from None
