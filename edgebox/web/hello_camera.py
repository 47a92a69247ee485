"""Reads from a hello what camera it is."""

from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import Camera, CameraId, SiteId
from edgebox.link.deadlines import to_steps
from edgebox.link.messages import Hello


def camera_of_hello(hello: Hello, family: FamilyName, pipeline: Pipeline | None) -> Camera:
    """Return the camera that says a hello, with the models that it is given."""
    return Camera(
        id=CameraId(hello.camera),
        app=hello.app,
        family=family,
        slo_ns=round(hello.slo_ms * 1e6),
        rate_hz=hello.rate_hz,
        width_px=hello.width_px,
        height_px=hello.height_px,
        min_accuracy=hello.min_accuracy,
        min_rate_hz=hello.min_rate_hz,
        steps=to_steps(hello.later),
        site=None if hello.site is None else SiteId(hello.site),
        pipeline=pipeline,
    )
