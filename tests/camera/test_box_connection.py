"""Which box a camera connects to, what it shows there, and for how long it tries."""

import random

import pytest
from aiohttp import ClientSession, web

from edgebox.camera.box_connection import REDIRECTS_AT_ONCE, BoxConnection
from edgebox.camera.session import BoxRefusedError, ConnectionLostError
from edgebox.domain.errors import InvalidInputError
from edgebox.link.failover import SILENCE_MAX_S
from edgebox.link.fleet_messages import BoxPlace, OtherBoxes, Redirect

OWN = "ws://box-1:8787/v1/stream"


def connection(server: str = "box-1", fingerprint: str | None = None) -> BoxConnection:
    return BoxConnection(server, "edgebox_own", fingerprint, random.Random(1))


def redirect(address: str, ticket: str = "edgebox-fleet.x") -> Redirect:
    return Redirect(BoxPlace(address), ticket)


def test_a_redirect_is_followed_at_once() -> None:
    made = connection()
    assert not made.redirected(redirect("http://box-2:8787"))
    assert (made.url, made.redirects) == ("ws://box-2:8787/v1/stream", 1)
    assert not made.redirected(redirect("https://box-3:8443"))
    assert (made.url, made.redirects) == ("wss://box-3:8443/v1/stream", 2)
    made.welcomed()
    assert made.redirects == 0


def test_boxes_that_go_on_redirecting_are_followed_with_waits() -> None:
    made = connection()
    waits = [made.redirected(redirect(f"http://box-{at % 2}:1")) for at in range(8)]
    assert waits == [False] * REDIRECTS_AT_ONCE + [True] * (8 - REDIRECTS_AT_ONCE)


@pytest.mark.parametrize("address", ["ftp://x", "", "http://", "http://x:99999", "http://x/?a"])
def test_a_redirect_to_no_address_is_not_followed(address: str) -> None:
    made = connection()
    assert made.redirected(redirect(address))
    assert made.url == OWN


def test_other_boxes_that_are_none_are_left_out() -> None:
    made = connection()
    assert made.silence_max_s > SILENCE_MAX_S
    places = (BoxPlace("ftp://x"), BoxPlace("http://box-2:8787", "no fingerprint"))
    made.told(OtherBoxes(places, "t"))
    assert made.silence_max_s > SILENCE_MAX_S
    made.told(OtherBoxes((*places, BoxPlace("http://box-3:8787", "ab" * 32)), "t"))
    assert made.silence_max_s == SILENCE_MAX_S
    assert not made.lost()
    assert made.url == "ws://box-3:8787/v1/stream"


def test_a_wrong_fingerprint_is_an_error_at_once() -> None:
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits"):
        connection(fingerprint="no fingerprint")


async def test_the_token_is_shown_to_the_own_box_and_the_ticket_to_others() -> None:
    shown: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        shown.append(request.headers.get("Authorization"))
        return web.Response(status=401)

    app = web.Application()
    app.router.add_get("/v1/stream", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        for _ in range(2):
            await web.TCPSite(runner, "127.0.0.1", 0).start()
        own, other = (f"http://127.0.0.1:{port}" for _, port in runner.addresses)
        made = connection(own)

        async with ClientSession() as client:
            with pytest.raises(BoxRefusedError, match="pair the camera"):
                await made.open(client)
            made.redirected(redirect(other))
            # Another box that does not know it is no reason to give up.
            with pytest.raises(ConnectionLostError, match="do all have one secret"):
                await made.open(client)
            made.lost()
    finally:
        await runner.cleanup()
    assert shown == ["Bearer edgebox_own", "Bearer edgebox-fleet.x"]
