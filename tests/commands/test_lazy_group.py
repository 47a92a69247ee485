"""Groups of commands: their help, and importing without delay."""

import gc
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from edgebox.commands.lazy_group import Group, importing
from edgebox.commands.root import main


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled: bool) -> None:
    try:
        if not enabled:
            gc.disable()
        with importing(), importing():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


def test_what_is_imported_is_looked_through_by_no_later_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[bool] = []  # whether garbage could be collected at that moment
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(gc.isenabled()))
    with importing():
        pass
    assert frozen == []  # nothing has come
    (tmp_path / "imported_only_here.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with importing():
        import_module("imported_only_here")
    assert frozen == [False]


@pytest.mark.parametrize(
    "group", ["", "cameras", "models", "plan", "service", "simulate", "tokens"]
)
def test_the_help_of_a_group_has_whole_sentences_at_80_columns(group: str) -> None:
    shown = CliRunner().invoke(main, [*filter(None, [group]), "--help"], terminal_width=80)
    assert shown.exit_code == 0
    assert not [line for line in shown.output.splitlines()[1:] if line.endswith("...")]
    assert all(len(line) <= 80 for line in shown.output.splitlines())


def test_every_group_tells_whole_sentences() -> None:
    context = click.Context(main)
    found = [main.get_command(context, name) for name in main.list_commands(context)]
    assert all(isinstance(each, Group) for each in found if isinstance(each, click.Group))


def commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, parent=context))


def test_every_option_has_a_help_text_and_a_boxs_address_one_pair_of_names() -> None:
    options = [
        (command.name, option)
        for command in commands(main, click.Context(main))
        for option in command.params
        if isinstance(option, click.Option)
    ]
    assert [(of, option.opts) for of, option in options if not option.help] == []
    addresses = [option.opts for _, option in options if {"--server", "--box"} & {*option.opts}]
    assert addresses == [["--server", "--box"]] * 4
