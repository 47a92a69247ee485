"""Logging in and out, tokens and pairing codes, in a real browser."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, Response, expect

from edgebox.domain.access import Scope
from edgebox.domain.overrides import Overrides
from edgebox.domain.requests import CameraId
from edgebox.domain.zones import Zone
from tests.end_to_end.browsing import (
    PHONE,
    STICKING_OUT,
    eventually,
    new_page,
    street,
    tile_of,
)
from tests.end_to_end.running import CLOSED, new_token, running, streaming, until

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]


async def test_a_person_logs_in_makes_a_token_and_logs_out(
    database: Path, browser: Browser
) -> None:
    async with running(database, **CLOSED) as app:
        admin = await new_token(app, Scope.ADMIN)
        page, complaints = await new_page(browser)
        await page.goto(f"{app.url}/#/access")
        await expect(page.get_by_text("This box needs a login")).to_be_visible()
        await page.get_by_label("Token").fill("edgebox_wrong")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_contain_text("There is no such token")
        complaints.clear()  # the browser names every answer 401
        await page.get_by_label("Token").fill(admin)
        await page.get_by_role("button", name="Log in").click()

        await page.get_by_label("Who gets it").fill("Bob")
        await page.get_by_role("button", name="Make a token").click()
        made = await page.get_by_test_id("made").locator("code").inner_text()
        bob = page.locator("tr", has_text="Bob")
        await expect(bob).to_contain_text("viewer")
        assert app.access.by_token(made) is not None

        viewer, _ = await new_page(browser)  # in another browser
        await viewer.goto(app.url)
        await viewer.get_by_label("Token").fill(made)
        await viewer.get_by_role("button", name="Log in").click()
        await expect(viewer.get_by_role("link", name="Scheduler")).to_be_visible()
        await expect(viewer.get_by_role("link", name="Access")).to_have_count(0)

        await bob.get_by_role("button", name="Revoke Bob…").click()
        await bob.get_by_role("button", name="Revoke Bob", exact=True).click()
        await expect(bob).to_have_count(0)
        await expect(viewer.get_by_text("This box needs a login")).to_be_visible()
        await expect(viewer.get_by_role("status")).to_contain_text("its token was revoked")

        await page.get_by_test_id("log-out").click()
        await expect(page.get_by_text("This box needs a login")).to_be_visible()
        await expect(page.get_by_role("status")).to_have_count(0)  # that was no surprise
        cookies = await page.context.cookies()
        assert cookies == []
        assert not complaints


async def test_who_needs_no_login_logs_in_to_do_more(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, complaints = await new_page(browser)
        await page.goto(f"{app.url}/#/access")
        await expect(page.get_by_text("Log in with an administrator’s token")).to_be_visible()
        await page.get_by_test_id("log-in").press("Enter")
        await expect(page.get_by_label("Token")).to_be_focused()
        await page.get_by_role("button", name="Back").click()
        await expect(page.get_by_text("Log in with an administrator’s token")).to_be_visible()
        await page.get_by_test_id("log-in").press("Enter")
        await page.get_by_label("Token").fill(await new_token(app, Scope.ADMIN))
        await page.get_by_label("Token").press("Enter")
        await expect(page.get_by_label("Who gets it")).to_be_visible()
        await page.get_by_test_id("log-out").click()
        await expect(page.get_by_test_id("log-in")).to_be_visible()
        assert not complaints


class Traffic:
    """What a page asks the box, and what it is answered."""

    def __init__(self, page: Page) -> None:
        self.pending: set[Request] = set()
        self.answers: list[tuple[int, str, str]] = []
        page.on("request", self._began)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)
        page.on("response", self._answered)

    def _began(self, request: Request) -> None:
        self.pending.add(request)

    def _ended(self, request: Request) -> None:
        self.pending.discard(request)

    def _answered(self, response: Response) -> None:
        request = response.request
        self.answers.append((response.status, request.method, request.url))


PRESS_ALL = """
document.querySelectorAll('main :is(button:not(:disabled), summary)').forEach((e) => e.click())
"""


@pytest.mark.parametrize("scope", [Scope.VIEWER, Scope.OPERATOR])
async def test_nothing_that_a_person_is_offered_is_refused(
    database: Path, browser: Browser, scope: Scope
) -> None:
    yard = Zone("yard", ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)))
    async with running(database, **CLOSED) as app, streaming(app, "gate", **street()):
        async with streaming(app, "gone", **street()):
            pass
        app.box.override(CameraId("gate"), Overrides(zones=(yard,)))
        page, _ = await new_page(browser)
        traffic = Traffic(page)

        async def settled() -> bool:
            busy = await page.locator('main[aria-busy="true"]').count()
            return not busy and not traffic.pending

        await page.goto(app.url)
        await page.get_by_label("Token").fill(await new_token(app, scope))
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_test_id("connection")).to_have_text("Live")
        traffic.answers.clear()  # before the login there was no session
        for place in (
            "#/", "#/cameras/gate", "#/cameras/gone", "#/cameras/never", "#/scheduler", "#/models",
            "#/add", "#/settings", "#/access",
        ):  # fmt: skip
            await page.goto(f"{app.url}/{place}")
            await expect(page.get_by_role("main")).to_be_visible()
            for _ in range(2):  # what one button brings forth is pressed as well
                await eventually(settled, bool, f"{place} to be there")
                await page.evaluate(PRESS_ALL)
            await eventually(settled, bool, f"the answers of {place}")
        assert traffic.answers
        assert [answer for answer in traffic.answers if answer[0] in (401, 403)] == []


async def test_the_tokens_need_no_sideways_scrolling_on_a_phone(
    database: Path, browser: Browser
) -> None:
    async with running(database, **CLOSED) as app:
        page, _ = await new_page(browser, viewport=PHONE)
        await page.goto(f"{app.url}/#/access")
        await page.get_by_label("Token").fill(await new_token(app, Scope.ADMIN))
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_test_id("token")).to_have_count(1)
        button = await page.get_by_role("button", name="Revoke").bounding_box()
        log_out = await page.get_by_role("button", name="Log out").bounding_box()
        assert button is not None and log_out is not None
        assert button["height"] < 1.5 * log_out["height"]  # its words are on one line
        assert await page.evaluate(STICKING_OUT) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        table = page.get_by_role("region", name="All tokens")
        fits = "(table) => table.scrollWidth <= table.clientWidth"
        assert await table.evaluate(fits)  # what is outside, nobody finds
        await app.access.issue("a-name-without-any-place-to-break-it-" * 2, Scope.VIEWER, None)
        await expect(page.get_by_test_id("token")).to_have_count(2)
        await expect(table).to_contain_text("viewer, made")
        await page.get_by_role("button", name="Revoke a-name").click()
        await expect(page.get_by_role("button", name="Keep it")).to_be_in_viewport()
        assert await table.evaluate(fits)
        version = await page.get_by_role("banner").locator("p span").first.bounding_box()
        tools = await page.get_by_test_id("connection").bounding_box()
        assert version is not None and tools is not None
        assert version["x"] + version["width"] <= tools["x"]


async def test_the_links_of_an_empty_page_have_the_pages_colour(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        page, _ = await new_page(browser, color_scheme="dark")
        await page.goto(app.url)
        link = page.get_by_test_id("empty").get_by_role("link")
        shown, wanted = await link.evaluate(
            """(link) => {
              const probe = link.appendChild(document.createElement('span'))
              probe.style.color = 'var(--accent)'
              return [getComputedStyle(link).color, getComputedStyle(probe).color]
            }"""
        )
        assert shown == wanted


async def test_a_camera_is_added_with_a_code_on_the_page(database: Path, browser: Browser) -> None:
    async with running(database, **CLOSED) as app:
        page, complaints = await new_page(browser)
        await page.goto(app.url)
        await page.get_by_label("Token").fill(await new_token(app, Scope.OPERATOR))
        await page.get_by_role("button", name="Log in").click()
        await page.get_by_role("link", name="Add a camera", exact=True).click()
        await page.get_by_label("Name of the new camera").fill("gate")
        await page.get_by_role("button", name="Get a pairing code").click()
        code = await page.get_by_test_id("pairing-code").inner_text()
        lines = page.get_by_test_id("lines")
        await expect(lines).to_contain_text(f"--name gate --pair {code}")
        await page.get_by_label("Name of the new camera").fill("door")
        await expect(lines).not_to_contain_text("--pair")  # a code is for its camera
        _, text = await app.access.pair(code, CameraId("gate"), "test")
        async with streaming(app, "gate", token=text):
            await page.get_by_role("link", name="Cameras", exact=True).click()
            await expect(tile_of(page, "gate")).to_be_visible()
        assert not complaints


async def test_a_phone_becomes_a_camera_with_a_code(database: Path, browser: Browser) -> None:
    async with running(database, **CLOSED) as app:
        code = app.access.begin_pairing(CameraId("phone")).shown
        page, _ = await new_page(browser)
        await page.goto(f"{app.url}/camera?name=phone#pair={code}")
        await expect(page.get_by_label("Pairing code")).to_have_value(code)
        await page.get_by_role("button", name="Start the camera").click()
        await until(lambda: len(app.access.tokens) == 1, "its token")
        await expect(page.get_by_label("Pairing code")).to_have_count(0)
        assert "pair=" not in page.url
        cookies = await page.context.cookies()
        assert [(cookie.get("httpOnly"), cookie.get("sameSite")) for cookie in cookies] == [
            (True, "Strict")
        ]
