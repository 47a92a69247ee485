"""Commands that the pages show exist, with the options they are shown with."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import click
import pytest

from edgebox.commands.root import main
from edgebox.commands.service import install

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = main.list_commands(click.Context(main))
_FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(edgebox [^`\n]+)`")
_AT_BEGIN = re.compile(r"\s*(?:\$ )?(?:\S*/bin/)?edgebox (?![a-z ]+: )(?=\S)")
"""A command by itself, and not the first words of what one prints."""
_BEHIND = re.compile(rf"\s(?:\S*/)?edgebox (?=(?:{'|'.join(NAMES)})(?:\s|$))")
"""A command behind another one: `docker exec edgebox edgebox doctor`, `sudo .../edgebox ...`."""


def shown(text: str) -> Iterator[str]:
    """Yield the command lines of a page from their `edgebox` on, whole."""
    for block in _FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if found := _AT_BEGIN.match(line) or _BEHIND.search(line):
                yield f"edgebox {line[found.end() :]}"


def mentioned(text: str) -> Iterator[str]:
    """Yield what a page says of commands within a line, with or without arguments."""
    yield from _INLINE.findall(text)


def words(line: str) -> list[str]:
    """Return the words behind `edgebox` as a shell reads them, as far as its command goes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    return list(takewhile(lambda word: not set(word) <= set("|&;()<>"), lexer))[1:]


def refused(given: Sequence[str]) -> str:
    """Return what a command says of its arguments before it runs; empty: it takes them."""
    command: click.Command = main
    context, rest = click.Context(main), list(given)
    while isinstance(command, click.Group):
        found = command.get_command(context, rest[0]) if rest else None
        if found is None:
            return f"there is no command {' '.join(rest[:1])}"
        command, context, rest = found, click.Context(found), rest[1:]
    try:
        with command.make_context(command.name, list(rest)) as made:
            if command is not install:
                return ""
            source = made.params["source"]
            runs = ["serve"] if source is None else ["camera", source]
            return refused([*runs, *made.params["arguments"]])
    except click.ClickException as error:
        return error.format_message()


def unknown(line: str) -> list[str]:
    """Return what of a command that is mentioned does not exist."""
    line, _, behind = line.partition(" -- ")
    named = [word.strip("[]") for word in line.replace("...", "").split()][1:]
    if behind:  # arguments of the command that a service runs
        return unknown(line) + unknown(
            f"edgebox {'camera' if '--camera' in named else 'serve'} {behind}"
        )
    command: click.Command = main
    while isinstance(command, click.Group) and named and not named[0].startswith("-"):
        name = named.pop(0).rstrip(",.;:")
        found = command.get_command(click.Context(command), name)
        if found is None:
            return [name]
        command = found
    known = {option for parameter in command.params for option in parameter.opts}
    known |= {option for parameter in command.params for option in parameter.secondary_opts}
    known |= {"--help", "-h"}
    options = (word.partition("=")[0] for word in named if re.match(r"--[a-z]", word))
    return [option for option in options if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    assert {line: wrong for line in mentioned(text) if (wrong := unknown(line))} == {}
    assert {line: said for line in shown(text) if (said := refused(words(line)))} == {}


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert unknown("edgebox nothing") == ["nothing"]
    assert unknown("edgebox serve --nothing 3") == ["--nothing"]
    assert unknown("edgebox service install --nothing -- --hots x") == ["--nothing", "--hots"]
    assert unknown("edgebox service install --camera scene: -- --name x --slo 3") == ["--slo"]
    assert unknown("edgebox simulate cameras yard.toml --json --seed 3") == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("edgebox nothing", "no command nothing"),
        ("edgebox camera", "Missing argument"),
        ("edgebox simulate cameras yard.toml --seed abc", "--seed"),
        ("edgebox tokens add --scope nonsense x", "--scope"),
        ("edgebox service install -- --hots x", "--hots"),
        ("edgebox service install --camera scene: -- --slo 3", "--slo"),
        ("edgebox results --json | jq --no-such-option > file  # all of them", ""),
        ("edgebox service install --camera webcam -- --name gate", ""),
    ],
)
def test_a_command_that_is_shown_wrongly_is_noticed(line: str, complaint: str) -> None:
    said = refused(words(line))
    assert (complaint in said) if complaint else (said == "")


def test_a_command_is_found_behind_another_one() -> None:
    lines = """```sh
$ edgebox doctor
docker exec edgebox edgebox doctor
sudo -u edgebox env X=/var/lib /opt/edgebox/bin/edgebox models list
kubectl -n cameras exec edgebox-0 -- edgebox backup /tmp/backup
docker run -d --name edgebox edgebox
useradd --system --home-dir /var/lib/edgebox --shell /bin/false edgebox
edgebox simulate cameras: yard.toml:31: no link
```
"""
    assert list(shown(lines)) == [
        "edgebox doctor", "edgebox doctor", "edgebox models list", "edgebox backup /tmp/backup",
    ]  # fmt: skip


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
