"""Owns how long a training runs, what it reports meanwhile, and whether its result is used.

Nothing here needs PyTorch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

REPORT_EVERY, ECHO_EVERY = 50, 500
"""Steps between two updates of the progress bar, and two lines where there is no terminal."""
SAVE_EVERY_S = 120
NEWEST_SHARE = 0.02
"""Share of the newest loss in the running mean."""

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Course:
    """How long to train."""

    steps: int  # 0: until the minutes are over
    minutes: float
    begin_at: float  # share of the course that an earlier run has done; it left its checkpoint

    def progress(self, steps: int, began_s: float) -> float:
        """Return how much of the course is done, 0..1."""
        if self.steps:
            done = steps / self.steps
        else:
            done = (time.monotonic() - began_s) / 60 / self.minutes
        return self.begin_at + (1 - self.begin_at) * done


def course_options(minutes: float) -> Callable[[Command], Command]:
    """Give a command the options of a course; the argument is its default length."""
    options = (
        click.option("--steps", default=0, help="Train for so many steps instead of --minutes."),
        click.option("--minutes", default=minutes, show_default=True),
        click.option("--seed", default=1, show_default=True),
        click.option(
            "--begin-at",
            default=0.0,
            help="Go on from the checkpoint, which was made at this share of the course.",
        ),
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class Trainer(Protocol):
    """What can be trained; `AveragedTraining` is the base of those here."""

    steps: int

    def step(self, batch: Any, progress: float) -> Sequence[float]:
        """Learn from one batch; return the losses."""

    def save(self, checkpoint: Path) -> None:
        """Write the averaged weights."""


def train(
    trainer: Trainer,
    batches: Iterable[Any],
    course: Course,
    *,
    losses: Sequence[str],
    checkpoint: Path,
) -> None:
    """Train until the course is done, with a checkpoint every few minutes.

    Args:
        trainer: learns.
        batches: endless.
        course: how long.
        losses: names of what `Trainer.step` returns.
        checkpoint: the file of the averaged weights.
    """
    began = saved = time.monotonic()
    means = [0.0] * len(losses)
    report = ""
    with click.progressbar(length=1000, label="training") as bar:
        for batch in batches:
            progress = course.progress(trainer.steps, began)
            if progress >= 1:
                break
            share = NEWEST_SHARE if trainer.steps else 1.0
            found = trainer.step(batch, progress)
            means = [mean + share * (x - mean) for mean, x in zip(means, found, strict=True)]
            report = ", ".join(f"{n} {mean:.3f}" for n, mean in zip(losses, means, strict=True))
            if trainer.steps % REPORT_EVERY == 0:
                bar.label = f"step {trainer.steps}: {report}"
                bar.update(int(progress * 1000) - bar.pos)
                if trainer.steps % ECHO_EVERY == 0 and not sys.stderr.isatty():
                    click.echo(f"{progress:.0%}, {bar.label}")
            if time.monotonic() - saved > SAVE_EVERY_S:
                saved = time.monotonic()
                trainer.save(checkpoint)
    click.echo(f"{trainer.steps} steps, {report}")
    trainer.save(checkpoint)


def replaces(place: Path, accuracy: float, judge: Callable[[Path], float], width_px: int) -> bool:
    """Say whether a new model is to replace the one in place, which is judged the same way.

    Args:
        place: where a model may be.
        accuracy: of the new model.
        judge: returns the accuracy of a model.
        width_px: the input size at which both are judged.
    """
    if not place.exists():
        return True
    old = judge(place)
    click.echo(f"in place {old:.4f}, new {accuracy:.4f} at {width_px} px")
    return accuracy >= old
