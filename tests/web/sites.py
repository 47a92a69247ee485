"""A site to answer from without a running box."""

from edgebox.app.model_jobs import ModelJobs
from edgebox.config.config_file import Config
from edgebox.domain.access import OpenTo
from edgebox.ingest.pulled_cameras import PulledCameras
from edgebox.link.bandwidth import EstimatorKind
from edgebox.runtime.access_control import AccessControl
from edgebox.runtime.box import Box
from edgebox.runtime.journal import Journal
from edgebox.runtime.machine_measurements import MachineMeasurements
from edgebox.storage.access_store import AccessStore
from edgebox.storage.credential_file import CredentialFile
from edgebox.storage.database import IN_MEMORY, Storage
from edgebox.web.feed import Feed
from edgebox.web.state_document import StateCache
from edgebox.web.web_context import WebContext


def box_that_waits() -> Box:
    """Return a box for one camera, without models or executors."""
    return Box(
        name="test",
        version="1",
        cameras_max=1,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda event: None,
        on_camera=lambda record: None,
    )


def site_of(storage: Storage) -> WebContext:
    box = box_that_waits()
    machine = MachineMeasurements()
    config = Config()
    model_jobs = ModelJobs(config, box, storage)
    access = AccessControl(AccessStore(IN_MEMORY), open_to=OpenTo.EVERYBODY)
    return WebContext(
        box, config, storage, machine, Journal(), StateCache(box, machine), Feed(box), model_jobs,
        access, PulledCameras(box, (), storage.sources, CredentialFile(None), 1),
    )  # fmt: skip
