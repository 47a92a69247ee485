"""What a person has set for a camera on the box, over what its hello asks for. Pure data."""

from dataclasses import dataclass, replace

from edgebox.domain.requests import Camera, SiteId


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings that win over a camera's hello; None: as the hello says."""

    slo_ns: int | None = None
    """The one deadline; later ones of the hello do not count then."""
    rate_hz: float | None = None
    """At most so many frames per second; a camera that asks for fewer sends fewer."""
    app: str | None = None
    min_accuracy: float | None = None
    site: SiteId | None = None

    def applied_to(self, asked: Camera) -> Camera:
        """Return what is in force for a camera that asks for this."""
        camera = asked
        if self.slo_ns is not None:
            camera = replace(camera, slo_ns=self.slo_ns, steps=())
        if self.rate_hz is not None:
            rate_hz = min(asked.rate_hz, self.rate_hz)
            camera = replace(camera, rate_hz=rate_hz, min_rate_hz=min(asked.min_rate_hz, rate_hz))
        if self.app is not None:
            camera = replace(camera, app=self.app)
        if self.min_accuracy is not None:
            camera = replace(camera, min_accuracy=self.min_accuracy)
        if self.site is not None:
            camera = replace(camera, site=self.site)
        return camera


NOTHING_SET = Overrides()
"""As the hello says, in everything."""
