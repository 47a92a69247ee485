"""`edgebox simulate`: the box under virtual time. Owns the group of its commands."""

import click

from edgebox.commands.lazy_group import Group
from edgebox.commands.simulate_batching import batching, make_workload_command
from edgebox.commands.simulate_cameras import cameras
from edgebox.commands.simulate_faults import faults
from edgebox.commands.simulate_fleet import fleet
from edgebox.commands.simulate_pipelines import pipelines
from edgebox.commands.simulate_vertical import vertical


@click.group(cls=Group)
def simulate() -> None:
    """Try scheduling policies and adaptation under virtual time."""


simulate.add_command(batching)
simulate.add_command(cameras)
simulate.add_command(faults)
simulate.add_command(fleet)
simulate.add_command(pipelines)
simulate.add_command(vertical)
simulate.add_command(make_workload_command)
