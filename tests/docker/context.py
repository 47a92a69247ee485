"""Finds what a build sees of the repository: the context that .dockerignore leaves."""

import re
import shutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    """Return what matches as Docker's patterns do: `*` within a name, `**` across folders."""
    out, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif pattern.startswith("**", at):
            out, at = out + ".*", at + 2
        elif pattern[at] == "*":
            out, at = out + "[^/]*", at + 1
        elif pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    return re.compile(out)


def ignores(patterns: Iterable[str], path: str) -> bool:
    """Return whether a file is kept out: the last pattern that fits it or a folder of it decides.

    Args:
        patterns: the lines of .dockerignore.
        path: of a file, relative to the context.
    """
    parts = path.split("/")
    prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    ignored = False
    for line in patterns:
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        wanted = pattern.startswith("!")
        regex = _regex(pattern.removeprefix("!").strip("/"))
        if any(regex.fullmatch(prefix) for prefix in prefixes):
            ignored = not wanted
    return ignored


def context_files(root: Path) -> Iterator[str]:
    """Yield the files of a build's context, relative to the repository."""
    lines = (root / ".dockerignore").read_text("utf-8").splitlines()
    let_in = [line[1:].strip("/") for line in lines if line.startswith("!")]
    folders = [root]
    while folders:
        for entry in sorted(folders.pop().iterdir()):
            path = entry.relative_to(root).as_posix()
            if not entry.is_dir() or entry.is_symlink():
                if not ignores(lines, path):
                    yield path
            # A folder that is kept out is walked only if something in it is let in again.
            elif not ignores(lines, path) or any(of.startswith(f"{path}/") for of in let_in):
                folders.append(entry)


def copy_context(root: Path, target: Path) -> int:
    """Copy a build's context; return how many files it has."""
    count = 0
    for path in context_files(root):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, target / path)
        count += 1
    return count
