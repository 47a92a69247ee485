"""Who asks, and by which name: the client that a proxy names, and the `Host` header.

The header is checked before everything else, against DNS rebinding.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_network

from aiohttp import hdrs, web
from yarl import URL

from edgebox.config.config_file import ServerParameters
from edgebox.config.host_names import KnownHosts, host_of, peer_address
from edgebox.domain.errors import EdgeboxError
from edgebox.web.addresses import own_names

_FORWARDED = "X-Forwarded-Host"
_FORWARDED_FOR = "X-Forwarded-For"
_FORWARDED_PROTO = "X-Forwarded-Proto"
_SHOWN_MAX = 100

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HostError(EdgeboxError):
    """The request names a host that is not this box."""

    http_status = 421
    code = "unknown_host"
    title = "This box is not known under the name in the request"


def known_hosts_only(server: ServerParameters) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that refuses requests for hosts that are not this box."""
    known = KnownHosts.of(server.host, server.allowed_hosts, own_names(server.host))
    is_trusted = trusted_proxies(server)

    @web.middleware
    async def answer(request: web.Request, handler: Answerer) -> web.StreamResponse:
        said = _requested_host(request, forwarded=is_trusted(request.remote))
        if said is not None:
            host = host_of(said)
            if host is None or not known.has(host):
                raise HostError(_message(said, host))
            if said != request.host:
                # From a whole address the library takes the host without its port, for good.
                request = request.clone(host=said, rel_url=request.rel_url)
        return await handler(request)

    return answer


def trusted_proxies(server: ServerParameters) -> Callable[[str | None], bool]:
    """Return a function that says whether a peer is one of `server.trusted_proxies`."""
    proxies = [ip_network(proxy, strict=False) for proxy in server.trusted_proxies]

    def is_trusted(peer: str | None) -> bool:
        address = peer_address(peer) if proxies else None
        return address is not None and any(address in network for network in proxies)

    return is_trusted


@dataclass(frozen=True, slots=True)
class Client:
    """Who sent a request, as a trusted proxy tells, or as its connection does."""

    address: str
    """The client's; the proxy's if that does not name it. Names of cameras, notices, wrong logins
    and decoding time count for it: nothing else bounds them."""
    limited: str | None
    """The address whose part of a shared amount it uses; None: all clients of a proxy that names
    none, which use what there is together."""
    secure: bool
    """Whether it uses TLS."""


_CLIENT = web.RequestKey("client", Client)


def name_clients(server: ServerParameters) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that finds out who sent a request, for `client_of`."""
    is_trusted = trusted_proxies(server)

    @web.middleware
    async def answer(request: web.Request, handler: Answerer) -> web.StreamResponse:
        request[_CLIENT] = _client(request, is_trusted)
        return await handler(request)

    return answer


def client_of(request: web.Request) -> Client:
    """Return who sent a request."""
    return request[_CLIENT]


def _client(request: web.Request, is_trusted: Callable[[str | None], bool]) -> Client:
    address = request.remote or "?"
    if not is_trusted(address):
        return Client(address, address, request.secure)
    # Each proxy adds whom it serves. What stands before an address that is not trusted came from
    # there.
    named = _listed(request, _FORWARDED_FOR)
    while named and is_trusted(address) and (found := peer_address(named.pop())) is not None:
        address = str(found)
    protocols = _listed(request, _FORWARDED_PROTO)
    secure = protocols[-1].lower() == "https" if protocols else request.secure
    return Client(address, None if is_trusted(address) else address, secure)


def _listed(request: web.Request, header: str) -> list[str]:
    """Return the values of a header that proxies add to, the nearest proxy's last."""
    lines = request.headers.getall(header, [])
    return [value.strip() for line in lines for value in line.split(",")]


def authority_of(request: web.Request) -> str | None:
    """Return the host and port that a request names; None: it names none."""
    return request.host if hdrs.HOST in request.headers else None


def _requested_host(request: web.Request, *, forwarded: bool) -> str | None:
    """Return the host in a request, from its sender or a trusted proxy; None: there is none.

    Browsers always send it; only health checks in HTTP/1.0 do not. The HTTP library refuses
    requests with two, and HTTP/1.1 requests without. Where the first line has a whole address,
    as clients of proxies send it, that counts and the header does not (RFC 9112, 3.2.2).
    """
    if forwarded and (named := _listed(request, _FORWARDED)):
        # The last one is the proxy's own; the ones before it came from its client.
        return named[-1]
    if not request.raw_path.startswith("/") and (target := URL(request.raw_path)).absolute:
        return target.raw_authority
    return request.headers.get(hdrs.HOST)


def _message(said: str, host: str | None) -> str:
    shown = said if len(said) <= _SHOWN_MAX else f"{said[:_SHOWN_MAX]}..."
    if host is None:
        return f"{shown!r} in the request's Host header is no host name"
    return (
        f"this box does not know that it is {shown!r}. If it is, add the name to its "
        f'configuration: allowed_hosts = ["{host[:_SHOWN_MAX]}"] under [server], or start it '
        f"with --allowed-host {host[:_SHOWN_MAX]}; its IP address is always accepted"
    )
