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


def proxy_warnings(config: Config) -> list[str]:
    """Return a warning if the box is open to itself, and seems to have a proxy before it."""
    server = config.server
    if config.access.open_to != OpenTo.LOOPBACK.value:
        return []
    if not (server.trusted_proxies or server.allowed_hosts):
        return []
    return [
        'access.open_to is "loopback", and server.trusted_proxies or server.allowed_hosts is set: '
        "a proxy on this machine that sends no X-Forwarded-For opens the box to everybody whom it "
        'lets in. Have it send the header, or set open_to = "nobody"'
    ]
