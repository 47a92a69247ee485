"""What the cameras of `benchmarks.dynamic` send, and the lines of a box's configuration for it."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edgebox.domain.model_family import LatencyProfile


@dataclass(frozen=True, slots=True)
class Application:
    """One kind of cameras: its share of all frames, and which pictures they send."""

    name: str
    share: float
    draw: Callable[[random.Random], int]
    """Returns the number of a picture."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The pictures of all applications, and what each takes alone."""

    applications: tuple[Application, ...]
    picture: Callable[[int], bytes]
    """The JPEG with a number."""
    alone_ms: Callable[[int], float]
    """What the picture with a number takes if nothing else runs."""
    size_px: tuple[int, int]
    """Width and height of the pictures."""
    hello: Mapping[str, Any]
    """What the cameras ask the box for."""
    config: str
    """Lines of the box's configuration: models, pipelines, and settings of the scheduler."""
    profiles: Mapping[str, LatencyProfile]
    """By variant, as they were measured."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """More about it, for the document."""
