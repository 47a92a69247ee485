"""`edgebox simulate`: the box under virtual time. Owns the group of its commands."""

import click

from edgebox.simulate.batching import batching, make_workload_command
from edgebox.simulate.cameras import cameras


@click.group()
def simulate() -> None:
    """Try scheduling policies and adaptation under virtual time."""


simulate.add_command(batching)
simulate.add_command(cameras)
simulate.add_command(make_workload_command)
