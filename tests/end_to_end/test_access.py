"""A box that is closed: its first token, pairing, names that belong to cameras, logins."""

import asyncio
from pathlib import Path

import aiohttp
import orjson
import pytest

from edgebox import healthcheck
from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.camera.pairing import PairingRefusedError, pair
from edgebox.camera.session import BoxRefusedError
from edgebox.client import SubscriptionRefusedError, subscribe
from edgebox.domain.access import Scope
from edgebox.domain.requests import CameraId
from edgebox.media.sources import PictureSource
from tests.conftest import PATIENCE_S
from tests.end_to_end.browsing import eventually
from tests.end_to_end.program import (
    Ended,
    beside_the_loop,
    configured,
    edgebox,
    environment,
    finish,
    said,
    start,
)
from tests.end_to_end.running import (
    CLOSED,
    PICTURE,
    SIZE_PX,
    SLO_MS,
    new_token,
    running,
    streaming,
    texts,
    until,
)

pytestmark = pytest.mark.usefixtures("few_sizes")


def source() -> PictureSource:
    return PictureSource(SIZE_PX, 10.0, lambda number: PICTURE)


async def refusal(app: App, name: str, text: str | None) -> str:
    """Return why a camera is refused."""
    camera = Camera(source(), app.url, name=name, token=text, slo_ms=SLO_MS)
    with pytest.raises(BoxRefusedError) as refused:
        await camera.run()
    return refused.value.reason


async def test_only_its_own_token_is_a_camera(database: Path) -> None:
    async with running(database, **CLOSED) as app:
        gate, viewer = (
            await new_token(app, Scope.CAMERA, "gate"),
            await new_token(app, Scope.VIEWER),
        )
        admin = await new_token(app, Scope.ADMIN)
        async with streaming(app, "gate", token=gate):
            assert await refusal(app, "gate", None) == "unauthorized"
            assert await refusal(app, "gate", "edgebox_nobody") == "unauthorized"
            assert await refusal(app, "gate", viewer) == "forbidden"
            assert await refusal(app, "gate", admin) == "forbidden"  # the name has a token
            assert await refusal(app, "door", gate) == "forbidden"
            async with streaming(app, "door", token=admin):
                pass
        # Also while it is absent: nobody takes its name and locks it out.
        assert await refusal(app, "gate", admin) == "forbidden"
        assert app.box.cameras[CameraId("gate")].agent.startswith("edgebox-camera/")


async def test_a_name_belongs_to_its_token_on_an_open_box_too(database: Path) -> None:
    async with running(database) as app:
        gate = await new_token(app, Scope.CAMERA, "gate")
        assert await refusal(app, "gate", None) == "forbidden"
        async with streaming(app, "gate", token=gate), streaming(app, "door"):
            pass


async def test_who_lacks_a_scope_is_told_what_there_is(database: Path) -> None:
    async with running(database) as app, aiohttp.ClientSession(app.url) as http:
        for text, has in (
            (None, "without a login there is only operator"),
            (await new_token(app, Scope.VIEWER), "the token has viewer"),
        ):
            headers = {} if text is None else {"Authorization": f"Bearer {text}"}
            async with http.post("/v1/cameras", json={}, headers=headers) as response:
                assert response.status == 403
                assert (await response.json())["detail"] == f"this needs the scope admin; {has}"


async def test_a_revoked_token_loses_its_connections_and_no_other(database: Path) -> None:
    async with running(database, **CLOSED) as app:
        gate, door = (
            await new_token(app, Scope.CAMERA, "gate"),
            await new_token(app, Scope.CAMERA, "door"),
        )
        viewer = await new_token(app, Scope.VIEWER)
        ids = {each.scope: each.id for each in app.access.tokens}
        of = {each.camera: each.id for each in app.access.tokens}
        async with (
            streaming(app, "door", token=door) as bystander,
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {viewer}"}) as client,
            client.ws_connect(f"{app.url}/v1/ui", autoping=False) as page,
            client.get(f"{app.url}/v1/results", headers={"Accept": "text/event-stream"}) as events,
        ):
            camera = Camera(source(), app.url, name="gate", token=gate, slo_ms=SLO_MS)
            run = asyncio.create_task(camera.run())
            await until(lambda: camera.summary().on_time >= 1, "its first answer")
            await app.access.revoke(of[CameraId("gate")])
            with pytest.raises(BoxRefusedError, match="pair the camera"):
                await asyncio.wait_for(run, PATIENCE_S)
            assert "gate left: its token was revoked, or its login has ended" in texts(app)
            await app.access.revoke(ids[Scope.VIEWER])
            async with asyncio.timeout(PATIENCE_S):
                async for message in page:
                    assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY)
                async for _ in events.content:
                    pass
            async with client.get(f"{app.url}/v1/state") as response:
                assert response.status == 401
            before = bystander.summary().on_time
            await until(lambda: bystander.summary().on_time >= before + 3, "three more answers")
            assert bystander.summary().reconnects == 0


async def test_programs_follow_results_with_a_token(database: Path) -> None:
    async with running(database, **CLOSED) as app:
        gate, viewer = (
            await new_token(app, Scope.CAMERA, "gate"),
            await new_token(app, Scope.VIEWER),
        )
        async with streaming(app, "gate", token=gate):
            async for message in subscribe(app.url, token=viewer):
                if message["type"] == "result":
                    break
            for wrong in (None, gate):
                with pytest.raises(SubscriptionRefusedError, match="scope viewer"):
                    await anext(subscribe(app.url, token=wrong))


async def test_no_code_is_used_up_for_a_token_that_cannot_be_kept(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "~nobody-of-this-name/x")
    (tmp_path / "file").touch()
    async with running(database, **CLOSED) as app:
        code = app.access.begin_pairing(CameraId("gate")).shown
        stream = ("camera", "scene:", "--size", "320x180", "--duration", "1")
        camera = (*stream, "--server", app.url, "--name", "gate")
        homeless = await edgebox(tmp_path, *camera, "--pair", code)
        assert (homeless.code, homeless.err.count("\n")) == (1, 1)
        assert "no home folder: set HOME or XDG_CONFIG_HOME" in homeless.err
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
        unwritable = await edgebox(tmp_path, *camera, "--pair", code)
        assert (unwritable.code, unwritable.err.count("\n")) == (1, 1)
        assert "no token can be kept" in unwritable.err
        token = await pair(app.url, code, "gate")  # the code is still good
        monkeypatch.setenv("XDG_CONFIG_HOME", "~nobody-of-this-name/x")
        (tmp_path / "file").write_text(token)
        given = await edgebox(tmp_path, *camera, "--token-file", str(tmp_path / "file"), "--json")
        assert given.json()["captured"] > 0


async def tokens(home: Path, *arguments: str) -> Ended:
    """Run `edgebox tokens` beside the box, which is another process."""
    return await beside_the_loop(home, "tokens", *arguments)


async def test_a_new_box_is_closed_and_a_camera_is_paired(database: Path, tmp_path: Path) -> None:
    """As a new user would: the token that serve prints, a code, the camera, and its next start."""
    home = tmp_path / "home"
    home.mkdir()
    config = tmp_path / "edgebox.toml"
    config.write_text(
        f'[server]\nport = 0\n[storage]\npath = "{database}"\n[[executors]]\ndevice = "cpu"\n'
        "[inference]\nprofile_s = 1\n"
    )
    box = await start(home, "serve", "--config", str(config))
    administrator = (await said(box, "administrator's token, shown only now")).split()[-1]
    url = (await said(box, "ready in")).split(" s: ")[1].strip()
    line = await said(box, "a first camera: ")
    server, code = line.split()[-3], line.split()[-1]
    camera = (
        "camera",
        "scene:",
        "--size",
        "320x180",
        "--server",
        server,
        "--name",
        "gate",
        "--duration",
        "1",
        "--slo-ms",
        "30000",
        "--json",
    )

    refused = await edgebox(home, *camera)
    assert refused.code == 1
    assert "--pair CODE" in refused.err
    wrong = await edgebox(home, *camera, "--pair", "AAAA-AAAA")
    assert wrong.code == 1
    assert "this pairing code does not work" in wrong.err

    paired = await edgebox(home, *camera, "--pair", code)
    assert paired.json()["on_time"] > 0, paired.err
    kept = home / ".config" / "edgebox" / "tokens.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    again = await edgebox(home, *camera, "--pair", code)  # as a service does
    assert again.json()["on_time"] > 0, again.err

    table = await tokens(home, "list", "--config", str(config), "--json")
    gate = next(each for each in table.json()["tokens"] if each["camera"] == "gate")
    assert gate["scope"] == "camera"
    viewer = await edgebox(
        home, "tokens", "add", "Grafana", "--scope", "metrics", "--config", str(config)
    )
    async with aiohttp.ClientSession() as client:

        async def metrics(text: str) -> int:
            headers = {"Authorization": f"Bearer {text}"}
            async with client.get(f"{url}/metrics", headers=headers) as response:
                return response.status

        grafana = viewer.out.strip()
        await eventually(
            lambda: metrics(grafana), lambda status: status == 200, "the box to follow"
        )
        assert await metrics(administrator) == 200
        revoked = await tokens(home, "revoke", gate["id"], "--config", str(config))
        assert revoked.code == 0
        assert (await edgebox(home, *camera)).code == 1
    box.terminate()
    await finish(box)

    next_start = await start(home, "serve", "--config", str(config), "--json")
    assert next_start.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        lines: list[bytes] = []
        while not lines or lines[-1] != b"}\n":
            lines.append(await next_start.stdout.readline())
    assert orjson.loads(b"".join(lines))["administrator_token"] is None  # it has been told
    next_start.terminate()
    await finish(next_start)
    assert environment(home)["HOME"] == str(home)


async def test_a_first_start_that_ends_before_its_document_tells_the_token(tmp_path: Path) -> None:
    """It is told once: the next start would not tell it."""
    config = configured(tmp_path, tmp_path / "new.sqlite3")
    config.write_text(config.read_text().replace("profile_s = 1", "profile_s = 600"))
    box = await start(tmp_path, "serve", "--config", str(config), "--json")
    await eventually(
        lambda: tokens(tmp_path, "list", "--config", str(config), "--json"),
        lambda listed: listed.code == 0 and listed.json()["tokens"],
        "the token",
    )
    box.terminate()
    ended = await finish(box)
    assert ended.out == ""
    assert "the administrator's token, shown only now: edgebox_" in ended.err


async def test_a_box_with_its_own_certificate(database: Path) -> None:
    async with running(database, **CLOSED, server__tls="self-signed") as app:
        assert app.url.startswith("https://")
        assert app.fingerprint is not None
        assert await asyncio.to_thread(healthcheck.lives, app.port)
        server, code = app.url, app.access.begin_pairing(CameraId("gate")).shown
        with pytest.raises(PairingRefusedError, match="another certificate"):
            await pair(server, code, "gate", fingerprint="0" * 64)
        with pytest.raises(PairingRefusedError, match="give its fingerprint"):
            await pair(server, code, "gate")
        remarks: asyncio.Queue[str] = asyncio.Queue()
        stranger = anext(subscribe(server, token="any", on_remark=remarks.put_nowait))
        trying = asyncio.ensure_future(stranger)
        assert "give its fingerprint" in await remarks.get()
        trying.cancel()
        gate = await pair(server, code, "gate", fingerprint=app.fingerprint)
        async with streaming(app, "gate", token=gate, fingerprint=app.fingerprint):
            viewer = await new_token(app, Scope.VIEWER)
            async for message in subscribe(server, token=viewer, fingerprint=app.fingerprint):
                if message["type"] == "result":
                    break
        pinned = aiohttp.TCPConnector(ssl=aiohttp.Fingerprint(bytes.fromhex(app.fingerprint)))
        async with (
            aiohttp.ClientSession(connector=pinned) as client,
            client.post(f"{server}/v1/login", json={"token": viewer}) as response,
            client.get(
                f"{server}/v1/addresses", headers={"Authorization": f"Bearer {viewer}"}
            ) as addresses,
        ):
            assert "Secure" in response.headers["Set-Cookie"]
            assert (await addresses.json())["tls"] is True
