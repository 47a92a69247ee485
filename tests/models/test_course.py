"""How long a training runs, what it saves, and when a new model takes the place of an old one."""

import itertools
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from models.training.course import Course, course_options, replaces, train


class FakeTrainer:
    """Learns nothing; each step's loss is its number."""

    def __init__(self) -> None:
        self.steps = 0
        self.seen: list[float] = []

    def step(self, batch: int, progress: float) -> tuple[float]:
        self.seen.append(progress)
        self.steps += 1
        return (float(batch),)

    def save(self, checkpoint: Path) -> None:
        checkpoint.write_text(str(self.steps))


@pytest.mark.parametrize(("begin_at", "first"), [(0.0, 0.0), (0.5, 0.5)])
def test_a_training_ends_with_its_course(tmp_path: Path, begin_at: float, first: float) -> None:
    trainer, checkpoint = FakeTrainer(), tmp_path / "weights"
    course = Course(steps=60, minutes=1.0, begin_at=begin_at)
    train(trainer, itertools.count(), course, losses=("loss",), checkpoint=checkpoint)
    assert trainer.seen[0] == first
    assert trainer.seen == sorted(trainer.seen)
    assert trainer.steps == 60
    assert checkpoint.read_text() == "60"


def test_without_steps_a_course_lasts_its_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.training.course.time.monotonic", lambda: 130.0)
    assert Course(steps=0, minutes=2.0, begin_at=0.0).progress(7, began_s=70.0) == 0.5


def test_a_command_with_the_options_of_a_course() -> None:
    @click.command()
    @course_options(minutes=20.0)
    def command(steps: int, minutes: float, seed: int, begin_at: float) -> None:
        click.echo(f"{steps} {minutes} {seed} {begin_at}")

    assert CliRunner().invoke(command, ["--steps", "5"]).output == "5 20.0 1 0.0\n"


@pytest.mark.parametrize(("old", "replaced"), [(0.4, True), (0.5, True), (0.6, False)])
def test_a_model_in_place_stays_only_if_it_is_better(
    tmp_path: Path, old: float, replaced: bool
) -> None:
    place = tmp_path / "model.onnx"
    assert replaces(place, 0.5, lambda _: old, 128)
    place.touch()
    assert replaces(place, 0.5, lambda _: old, 128) is replaced
