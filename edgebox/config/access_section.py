"""Who may use the box: `[access]`."""

from dataclasses import dataclass

from edgebox.config.keys import key
from edgebox.domain.access import OpenTo, Scope

_SCOPES = (Scope.VIEWER, Scope.OPERATOR, Scope.ADMIN)


@dataclass(frozen=True, slots=True)
class AccessParameters:
    """Who may use the box without a token (docs/how-to/access.md)."""

    open_to: str = key(
        "nobody",
        "Who needs neither token nor login: nobody; loopback, programs and browsers on this "
        "machine; everybody who reaches the port",
        choices=tuple(OpenTo),
    )
    open_scope: str = key(
        "operator",
        "What they may do: viewer, see everything; operator, also be and set cameras; admin, "
        "also import models, make tokens and add cameras that the box fetches",
        choices=_SCOPES,
    )
