"""Who sent a request: what trusted proxies say counts, and nothing that others say."""

from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from edgebox.config.config_file import LimitParameters, ServerParameters
from edgebox.runtime.refusals import Refusals
from edgebox.web.hosts import Client, client_of, name_clients
from edgebox.web.request_limits import RequestLimits, TooManyViewersError

PROXY, INNER, ANN, BOB = "10.0.0.2", "10.0.0.3", "192.0.2.1", "192.0.2.2"
SERVER = ServerParameters(trusted_proxies=(PROXY, INNER))


async def client(peer: str, *headers: tuple[str, str], server: ServerParameters = SERVER) -> Client:
    found: list[Client] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        found.append(client_of(request))
        # As where the first line has a whole address.
        assert client_of(request.clone(host="box")) == found[0]
        return web.Response()

    request = make_mocked_request("GET", "/", CIMultiDict(headers)).clone(remote=peer)
    await name_clients(server)(request, answer)
    return found[0]


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "address", "limited"),
    [
        (ANN, [], ANN, ANN),
        (ANN, [BOB], ANN, ANN),
        (PROXY, [ANN], ANN, ANN),
        # What the client said stands before what its proxy says, in one line or two.
        (PROXY, [f"{BOB}, {ANN}"], ANN, ANN),
        (PROXY, [BOB, ANN], ANN, ANN),
        (PROXY, [f"{BOB}, {ANN}, {INNER}"], ANN, ANN),
        (PROXY, ["::ffff:192.0.2.1"], ANN, ANN),
        (PROXY, [], PROXY, None),
        (PROXY, [INNER], INNER, None),
        (PROXY, [f"{ANN}, unknown"], PROXY, None),
    ],
)
async def test_a_trusted_proxy_names_its_clients(
    peer: str, forwarded_for: list[str], address: str, limited: str | None
) -> None:
    found = await client(peer, *(("X-Forwarded-For", each) for each in forwarded_for))
    assert (found.address, found.limited) == (address, limited)


@pytest.mark.parametrize(
    ("peer", "protocol", "secure"),
    [
        (PROXY, "https", True),
        (PROXY, "https, http", False),
        (PROXY, None, False),
        (ANN, "https", False),
    ],
)
async def test_a_trusted_proxy_says_whether_its_client_has_tls(
    peer: str, protocol: str | None, secure: bool
) -> None:
    headers = [] if protocol is None else [("X-Forwarded-Proto", protocol)]
    assert (await client(peer, *headers)).secure is secure


async def test_clients_of_a_proxy_that_names_them_are_limited_one_by_one() -> None:
    limits = RequestLimits(LimitParameters(viewers_max=4), SERVER, Mock(spec=Refusals))
    ann, bob = [await client(PROXY, ("X-Forwarded-For", each)) for each in (ANN, BOB)]
    nobody = await client(PROXY)
    with limits.viewer(ann), limits.viewer(ann):
        with pytest.raises(TooManyViewersError), limits.viewer(ann):
            pass
        with limits.viewer(bob):
            pass
    with limits.viewer(nobody), limits.viewer(nobody), limits.viewer(nobody):
        pass
