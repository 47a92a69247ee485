"""Decides who sent a request: a token, a browser's session, or somebody who needs no login.

Browsers send cookies with requests of any page. So sessions are refused to pages of other origins:
by SameSite, and by the origin that browsers name in WebSockets and whatever changes something.
"""

from aiohttp import hdrs, web

from edgebox.config.host_names import host_of, is_loopback, peer_address
from edgebox.domain.access import ForbiddenError, Identity, Scope, UnauthorizedError
from edgebox.domain.errors import EdgeboxError
from edgebox.runtime.access_control import AccessControl
from edgebox.web.hosts import authority_of

_IDENTITIES: web.RequestKey[tuple[Identity, ...]] = web.RequestKey("identities")
_BEARER = "bearer "
_FORWARDING = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
_SAFE = ("GET", "HEAD")


class ForeignOriginError(EdgeboxError):
    """A web page of another site tried to use this box through its visitor's browser."""

    http_status = 403
    code = "foreign_origin"
    title = "Pages of other sites may not use this box"


def identify(access: AccessControl, request: web.Request, scope: Scope | None) -> None:
    """Find out who sent a request, and refuse those who may not do what it wants.

    Raises:
        UnauthorizedError: nobody did who may use this box.
        ForbiddenError: the sender's token does not allow it.
        ForeignOriginError: a browser does not say which page its request comes from.
    """
    if scope is None:
        return
    known = _identities(access, request, scope)
    allowed = tuple(identity for identity in known if identity.may(scope))
    if not allowed:
        raise _refused(known, scope)
    # Those with a session come first.
    if allowed[0].session is not None and _changes(request) and hdrs.ORIGIN not in request.headers:
        raise ForeignOriginError("a browser's session needs the header Origin here")
    request[_IDENTITIES] = allowed


def may(access: AccessControl, request: web.Request, scope: Scope) -> bool:
    """Return whether the sender of a request may do what needs a scope.

    Raises:
        UnauthorizedError: it has a token that does not exist.
    """
    return any(identity.may(scope) for identity in _identities(access, request, scope))


def sender_of(request: web.Request) -> Identity:
    """Return who sent a request, on a route that needs a scope."""
    return identities_of(request)[0]


def identities_of(request: web.Request) -> tuple[Identity, ...]:
    """Return all as whom the sender may do what its route needs, what counts most first."""
    return request[_IDENTITIES]


def whoever_sent(access: AccessControl, request: web.Request) -> Identity | None:
    """Return who sent a request, on a route that everybody may use; None: nobody known.

    Raises:
        UnauthorizedError: it has a token that does not exist.
    """
    return next(iter(_identities(access, request, None)), None)


def of_browser(access: AccessControl, request: web.Request, *, camera: bool) -> Identity | None:
    """Return whose session a browser has, a camera's or a person's; None: none."""
    if hdrs.COOKIE not in request.headers:
        return None
    cookie = request.cookies.get(session_cookie(request, camera=camera))
    return None if cookie is None else access.by_session(cookie)


def port_of(request: web.Request) -> int:
    """Return the port of the box that a request came to."""
    return request.transport.get_extra_info("sockname")[1] if request.transport else 0


def has_tls(request: web.Request) -> bool:
    """Return whether the box speaks TLS where a request came to, whatever its client uses."""
    return (
        request.transport is not None and request.transport.get_extra_info("sslcontext") is not None
    )


def session_cookie(request: web.Request, *, camera: bool) -> str:
    """Return the name of a cookie. Browsers do not tell the ports of one machine apart."""
    return f"edgebox_{'camera' if camera else 'session'}_{port_of(request)}"


def _identities(access: AccessControl, request: web.Request, scope: Scope | None) -> list[Identity]:
    """Return whom a request may come from, what counts most first.

    That is what the request says itself. Of a browser it is the person who logged in, but the
    camera that it was paired as where it wants to be one.

    Raises:
        UnauthorizedError: it has a token that does not exist.
    """
    said = request.headers.get(hdrs.AUTHORIZATION)
    if said is not None:
        if not said.lower().startswith(_BEARER):
            raise UnauthorizedError("the header Authorization must be: Bearer TOKEN")
        shown = said[len(_BEARER) :].strip()
        identity = access.by_token(shown) or access.by_ticket(shown)
        if identity is None:
            raise UnauthorizedError("there is no such token, or it was revoked")
        return [identity]
    found = [
        of_browser(access, request, camera=False),
        access.without_login(from_loopback=_from_loopback(request)),
    ]
    if scope is Scope.CAMERA:
        found.insert(0, of_browser(access, request, camera=True))
    elif scope is None:
        found.append(of_browser(access, request, camera=True))
    return [identity for identity in found if identity is not None]


def _from_loopback(request: web.Request) -> bool:
    """Return whether a program on this machine asks, for itself and not as a proxy."""
    address = peer_address(request.remote)
    if address is None or not address.is_loopback:
        return False
    if any(header in request.headers for header in _FORWARDING):
        return False
    host = host_of(authority_of(request) or "")
    return host is not None and is_loopback(host)  # a proxy may pass on what it was asked for


def _changes(request: web.Request) -> bool:
    return request.method not in _SAFE or hdrs.UPGRADE in request.headers


def _refused(known: list[Identity], scope: Scope) -> EdgeboxError:
    if known:
        has = "the token has" if known[0].token is not None else "without a login there is only"
        return ForbiddenError(f"this needs the scope {scope}; {has} {known[0].scope}")
    return UnauthorizedError(
        f"this box needs a login: send the header Authorization: Bearer TOKEN, with a token of "
        f"the scope {scope}; the page's Access, or `edgebox tokens add` on the box, makes one"
    )


def refuse_foreign_pages(request: web.Request) -> None:
    """Refuse requests from pages of other origins, which browsers allow for WebSockets.

    Raises:
        ForeignOriginError: the origin is not this box.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        return
    box = authority_of(request)
    if box is None or _place(origin.split("://", 1)[-1]) != _place(box):
        raise ForeignOriginError(f"pages of {origin} may not use this box")


def _place(authority: str) -> str:
    """Return an authority in lower case, with IPv6 addresses as browsers write them."""
    host = host_of(authority)
    if host is None or ":" not in host:
        return authority.lower()
    return f"[{host}]{authority.rpartition(']')[2]}"
