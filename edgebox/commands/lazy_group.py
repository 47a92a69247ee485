"""Groups of commands that are imported when they are used, and importing without delay."""

import contextlib
import gc
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import ClassVar

import click


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Collect no garbage meanwhile: looking for it takes a seventh of the time of large imports.

    What an import makes stays, so nobody looks through it afterwards either.
    """
    enabled, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > known:
            gc.freeze()
        if enabled:
            gc.enable()


class Group(click.Group):
    """A group whose help has the whole first sentence of each command, on as many lines."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(sys.maxsize)) for name, each in found if each]
            )


class LazyGroup(Group):
    """A group of which a command is imported when it runs or is described."""

    MODULES: ClassVar = {
        "backup": "edgebox.commands.backups",
        "camera": "edgebox.commands.camera",
        "cameras": "edgebox.commands.cameras",
        "detect": "edgebox.commands.detect",
        "fleet": "edgebox.commands.fleet_boxes",
        "models": "edgebox.commands.models",
        "plan": "edgebox.commands.plan",
        "profile": "edgebox.commands.profile",
        "restore": "edgebox.commands.backups",
        "results": "edgebox.commands.results",
        "service": "edgebox.commands.service",
        "simulate": "edgebox.commands.simulate",
        "tokens": "edgebox.commands.tokens",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.MODULES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.MODULES and cmd_name not in self.commands:
            with importing():
                self.add_command(getattr(import_module(self.MODULES[cmd_name]), cmd_name))
        return super().get_command(ctx, cmd_name)
