"""A site to answer from without a running box."""

from edgebox.config import Config
from edgebox.link.bandwidth import Rule
from edgebox.runtime.box import Box
from edgebox.runtime.journal import Journal
from edgebox.runtime.looplag import LoopLag
from edgebox.storage.database import Storage
from edgebox.web.feed import Feed
from edgebox.web.site import Site
from edgebox.web.state import StateCache
from edgebox.workshop import Workshop


def site_of(storage: Storage) -> Site:
    box = Box(
        name="test",
        version="1",
        cameras_max=1,
        bandwidth=Rule.CAUTIOUS,
        on_event=lambda event: None,
        on_camera=lambda record: None,
    )
    lag = LoopLag()
    config = Config()
    workshop = Workshop(config, box, storage)
    return Site(box, config, storage, lag, Journal(), StateCache(box, lag), Feed(box), workshop)
