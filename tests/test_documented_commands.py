"""Commands that the pages show exist, with the options they are shown with."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from edgebox.commands.root import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(edgebox [^`\n]+)`")


def shown(text: str) -> Iterator[str]:
    """Yield the command lines of a page that begin with edgebox, whole."""
    for block in _FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"\s*(?:\$ )?(?:\S*/bin/)?(edgebox .*)", line)
            if found:
                yield found[1].partition("  #")[0]
    yield from _INLINE.findall(text)


def unknown(line: str) -> list[str]:
    """Return what of a command line does not exist."""
    line, _, behind = line.partition(" -- ")
    words = [word.strip("[]") for word in line.replace("...", "").split()][1:]
    if behind:  # arguments of the command that a service runs
        return unknown(line) + unknown(
            f"edgebox {'camera' if '--camera' in words else 'serve'} {behind}"
        )
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0).rstrip(",.;:")
        found = command.get_command(click.Context(command), name)
        if found is None:
            return [name]
        command = found
    known = {option for parameter in command.params for option in parameter.opts}
    known |= {option for parameter in command.params for option in parameter.secondary_opts}
    known |= {"--help", "-h"}
    options = (word.partition("=")[0] for word in words if re.match(r"--[a-z]", word))
    return [option for option in options if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page: Path) -> None:
    lines = list(shown(page.read_text("utf-8")))
    assert {line: wrong for line in lines if (wrong := unknown(line))} == {}


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert unknown("edgebox nothing") == ["nothing"]
    assert unknown("edgebox serve --nothing 3") == ["--nothing"]
    assert unknown("edgebox service install --nothing -- --hots x") == ["--nothing", "--hots"]
    assert unknown("edgebox service install --camera scene: -- --name x --slo 3") == ["--slo"]
    assert unknown("edgebox simulate cameras yard.toml --json --seed 3") == []


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for part in command.list_commands(context):
        found = command.get_command(context, part)
        assert found is not None
        yield from commands(found, f"{name} {part}")


def test_every_command_prints_json_as_the_readme_says() -> None:
    without = {
        name
        for name, command in commands(main, "edgebox")
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == {"edgebox simulate make-workload"}


PARTS = {"ingest_client", "links_relay", "ray_cluster"}
"""Programs that a benchmark starts."""


def test_the_page_of_the_benchmarks_lists_each_that_can_be_run() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    modules = sorted((ROOT / "benchmarks").glob("*.py"))
    run = {module.stem for module in modules if "__main__" in module.read_text("utf-8")} - PARTS
    listed = set(re.findall(r"`python (?:-m benchmarks\.|benchmarks/)(\w+)", page))
    assert run - listed == set()
