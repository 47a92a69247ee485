"""Who may do what: scopes, tokens and the identity behind a request. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.requests import CameraId


class Scope(StrEnum):
    """What a token allows, and what a route demands."""

    CAMERA = "camera"
    """Send pictures; a token of this scope as one camera only."""
    METRICS = "metrics"
    """Read `/metrics`."""
    VIEWER = "viewer"
    """See everything that cameras see, and why."""
    OPERATOR = "operator"
    """Set, pair and forget cameras; all that viewers and cameras may."""
    ADMIN = "admin"
    """Manage tokens and models; all that the others may."""


GRANTS: Mapping[Scope, frozenset[Scope]] = {
    Scope.CAMERA: frozenset({Scope.CAMERA}),
    Scope.METRICS: frozenset({Scope.METRICS}),
    Scope.VIEWER: frozenset({Scope.VIEWER, Scope.METRICS}),
    Scope.OPERATOR: frozenset({Scope.OPERATOR, Scope.VIEWER, Scope.METRICS, Scope.CAMERA}),
    Scope.ADMIN: frozenset(Scope),
}
"""What a token of a scope may do."""


class OpenTo(StrEnum):
    """Who needs neither token nor login."""

    NOBODY = "nobody"
    LOOPBACK = "loopback"
    """Programs and browsers on the box itself."""
    EVERYBODY = "everybody"


class UnauthorizedError(EdgeboxError):
    """The request names nobody who may use this box."""

    http_status = 401
    code = "unauthorized"
    title = "This needs a token or a login"


class ForbiddenError(EdgeboxError):
    """The token does not allow this."""

    http_status = 403
    code = "forbidden"
    title = "The token does not allow this"


class TooManyAttemptsError(EdgeboxError):
    """Too many wrong tokens or codes came from one address."""

    http_status = 429
    code = "too_many_attempts"
    title = "Too many wrong tokens or codes"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the box knows it: never its text, only that text's hash."""

    id: str
    """Eight hexadecimal digits, for people and routes."""
    name: str
    """Who has it, for people."""
    scope: Scope
    camera: CameraId | None
    """The only camera that it may be, with the scope `camera`."""
    sha256: str
    """Of its text, hexadecimal. The text is random, so that no slower hash is needed."""
    created_ms: int
    """Unix milliseconds, as all instants here."""
    last_used_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """What a camera's tickets in a fleet descend from: that its token was shown at its own box."""

    token: str
    """Id of the token; empty: the box needed none."""
    at_s: int
    """When it was shown last, or its connection was still open; Unix seconds."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sent a request."""

    scope: Scope
    camera: CameraId | None = None
    """The only camera that it may be."""
    token: Token | None = None
    """None: it needs no login."""
    session: str | None = None
    """Hash of the browser session that says so; None: the request has the token itself."""
    login: Login | None = None
    """Of a camera that shows a ticket; None: it shows none."""

    def may(self, scope: Scope) -> bool:
        """Return whether it may do what needs this scope."""
        return scope in GRANTS[self.scope]
