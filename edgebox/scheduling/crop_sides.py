"""Owns how large the objects are that each stage of a camera's pipeline is given. Pure.

Sides are learned as a share of their picture's side, so they say how large the same objects would
be in a picture of another size. Objects too small to be taken from the pictures as they were sent
(`PipelineStage.side_min_px`) are not known.
"""

import math
from collections import deque

from edgebox.domain.pipelines import PipelineStage, StageName
from edgebox.domain.requests import CameraId, Request

WINDOW = 256
"""Crops of a camera for a stage whose sides are kept."""
SIDES_MIN = 16
"""Fewer say nothing."""
QUANTILES = 8
"""Into so many parts of equal weight a distribution is divided."""


class CropSides:
    """The sides of the last crops of every camera and stage."""

    def __init__(self) -> None:
        self._sides: dict[CameraId, dict[StageName, deque[float]]] = {}

    def observe(self, frame: Request, crop: Request, stage: PipelineStage) -> None:
        """Note a crop.

        Args:
            frame: as it was sent.
            crop: of this picture; it has the object and the stage's margin at each side.
            stage: that the crop is for.
        """
        picture_px = frame.width_px * frame.height_px
        object_side_px = math.sqrt(crop.width_px * crop.height_px) / (1 + 2 * stage.margin)
        of_camera = self._sides.setdefault(crop.camera, {})
        recent = of_camera.setdefault(stage.name, deque(maxlen=WINDOW))
        recent.append(min(1.0, object_side_px / math.sqrt(max(1, picture_px))))

    def forget(self, camera: CameraId) -> None:
        """Forget a camera."""
        self._sides.pop(camera, None)

    def quantiles(self, camera: CameraId, stage: StageName) -> tuple[float, ...]:
        """Return the middles of parts of equal weight, rising, in (0, 1]; empty: not known."""
        known = sorted(self._sides.get(camera, {}).get(stage, ()))
        if len(known) < SIDES_MIN:
            return ()
        return tuple(known[(2 * at + 1) * len(known) // (2 * QUANTILES)] for at in range(QUANTILES))
