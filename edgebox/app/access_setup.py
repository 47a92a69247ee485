"""Makes what decides who may use a box, from its configuration."""

from edgebox.config.config_file import Config
from edgebox.domain.access import OpenTo, Scope
from edgebox.runtime.access_control import AccessControl
from edgebox.storage.access_store import AccessStore, access_file


def access_control(config: Config) -> AccessControl:
    """Return it with nothing read so far."""
    return AccessControl(
        AccessStore(access_file(config.storage.file)),
        open_to=OpenTo(config.access.open_to),
        open_scope=Scope(config.access.open_scope),
    )
