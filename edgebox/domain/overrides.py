"""Settings of a camera that a person made on the box; they override its hello. Pure data."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineName
from edgebox.domain.requests import Camera, SiteId
from edgebox.domain.zones import Line, Zone


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings that override a camera's hello; None: the hello's."""

    slo_ns: int | None = None
    """The only deadline; the later ones of the hello are ignored then."""
    rate_hz: float | None = None
    """Maximum frames per second; a camera that asks for fewer sends fewer."""
    app: str | None = None
    min_accuracy: float | None = None
    site: SiteId | None = None
    pipeline: PipelineName | None = None
    family: FamilyName | None = None
    """The model family that its frames run on, instead of a pipeline."""
    tracking: bool | None = None
    """Whether objects are tracked. This and the next are of no hello; None: the file's."""
    zones: tuple[Zone, ...] | None = None
    lines: tuple[Line, ...] | None = None

    def applied_to(
        self,
        hello: Camera,
        pipelines: Mapping[PipelineName, Pipeline] | None = None,
        families: Container[FamilyName] = (),
    ) -> Camera:
        """Return a camera's settings with these overrides applied.

        Args:
            hello: the settings that the camera asks for.
            pipelines: those that are served; one that is not among them changes nothing.
            families: likewise.
        """
        camera = hello
        if self.slo_ns is not None:
            camera = replace(camera, slo_ns=self.slo_ns, steps=())
        if self.rate_hz is not None:
            rate_hz = min(hello.rate_hz, self.rate_hz)
            camera = replace(camera, rate_hz=rate_hz, min_rate_hz=min(hello.min_rate_hz, rate_hz))
        if self.app is not None:
            camera = replace(camera, app=self.app)
        if self.min_accuracy is not None:
            camera = replace(camera, min_accuracy=self.min_accuracy)
        if self.site is not None:
            camera = replace(camera, site=self.site)
        if self.pipeline is not None and (found := (pipelines or {}).get(self.pipeline)):
            camera = replace(camera, family=found.first.family, pipeline=found)
        if self.family is not None and self.family in families:
            camera = replace(camera, family=self.family, pipeline=None)
        return camera


NOTHING_SET = Overrides()
"""No overrides."""
