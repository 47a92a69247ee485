"""Imports a model in a process of its own, beside a running box or for a command.

Started as `python -m edgebox.inference.importing.import_worker`.

It reads its order as one line of JSON, and writes progress, questions and the outcome as lines of
JSON; the answer to a question is a line, too. In a process of its own, a graph that exhausts memory
or never ends harms only the import: who started the process can end it, and the kernel kills it
first when memory is short. Its environment has no secrets, and its memory, CPU time and files are
bounded.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebox.domain.errors import EdgeboxError, ModelError

if TYPE_CHECKING:
    from edgebox.inference.importing.layouts import Layout
    from edgebox.inference.importing.recognition import Candidate

_NICENESS = 10
_CPU_S_MAX = 3_600
"""CPU time: more than the box waits for on four cores."""
_MEMORY_BYTES_MIN = 4 << 30
"""Address space is at least this much, else as much as the machine has memory."""
_FILE_BYTES_MAX = 8 << 30
_FIRST_TO_GO = "1000"


def main() -> None:
    """Carry out the order on standard input."""
    order = json.loads(sys.stdin.readline())
    # Ending by an exception, so that an unfinished folder goes. Ctrl-C at a terminal reaches this
    # process, too; who started it decides.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    _limit_resources()
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    try:
        _send(done=_imported(order))
    except EdgeboxError as error:
        _send(refused=str(error))
    except MemoryError:
        _send(refused="importing it needs more memory than this machine has")


def _limit_resources() -> None:
    """Bound what a graph can use, and leave no image of the memory behind."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, _CPU_S_MAX),
        (resource.RLIMIT_FSIZE, _FILE_BYTES_MAX),
        (resource.RLIMIT_AS, max(_MEMORY_BYTES_MIN, memory_bytes)),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))


def _imported(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out an order; return its outcome for the box.

    Raises:
        ModelError: the file is not taken.
    """
    try:
        from edgebox.inference.importing.importer import ImportOptions, import_family  # noqa: PLC0415
        from edgebox.inference.importing.layouts import layout_named  # noqa: PLC0415
        from edgebox.media.sources import read_picture  # noqa: PLC0415
    except ImportError as error:
        raise ModelError(f"importing needs the onnx package, which is not whole: {error}") from None
    imported = import_family(
        [Path(file) for file in order["files"]],
        Path(order["models"]),
        ImportOptions(
            name=order["name"],
            labels=None if order["labels"] is None else tuple(order["labels"]),
            sizes_px=_sizes(order["sizes_px"]),
            layout=layout_named(order["layout"] or ""),
            embeds=order["embeds"],
            licence=order["licence"],
            batch=order["batch"],
            half=order["half"],
            pictures=tuple(read_picture(Path(picture)) for picture in order["pictures"]),
        ),
        taken=order["taken"],
        ask=_ask if order["asks"] else None,
        progress=lambda text, share: _send(text=text, share=share),
    )
    layout = imported.candidate.match.layout
    return {
        "folder": str(imported.folder),
        "layout": layout.name,
        "title": layout.title,
        "variants": len(imported.family.variants),
        "found": imported.candidate.summary(),
        "compared": imported.compared,
        "remarks": imported.remarks,
    }


def _sizes(written: list[list[int]] | None) -> tuple[tuple[int, int], ...] | None:
    return None if written is None else tuple((width, height) for width, height in written)


def _ask(path: Path, possible: "Sequence[Candidate]") -> "Layout | None":
    """Have a person choose a layout, who is told what each would find."""
    _send(ask=path.name, layouts=[_in_words(each) for each in possible])
    chosen = json.loads(sys.stdin.readline())
    return None if chosen is None else possible[chosen].match.layout


def _in_words(candidate: "Candidate") -> str:
    doubts = f" ({candidate.objections})" if candidate.doubts else ""
    layout = candidate.match.layout
    return f"{layout.name}, {layout.title}{doubts}: {candidate.summary()}"


def _send(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
