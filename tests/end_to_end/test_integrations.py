"""What the pages about alerts and integrations, and deploy/, tell people to use works."""

import json
import re
import tomllib
from pathlib import Path

import yaml
from aiohttp import web

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.notifications.topics import Topics, device
from edgebox.web.server import ROUTES
from tests.conftest import settings
from tests.end_to_end.broker import Broker, listening
from tests.end_to_end.running import free_port, streaming, until
from tests.end_to_end.test_mqtt import street

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
TUTORIAL = (ROOT / "docs/tutorial-alert.md").read_text("utf-8")
INTEGRATIONS = (ROOT / "docs/how-to/integrations.md").read_text("utf-8")


def rendered(template: str, event: dict[str, object]) -> str:
    """Return what ntfy makes of a template: Go's, of which the tutorial uses fields alone."""
    return re.sub(r"\{\{\.(\w+)\}\}", lambda field: str(event[field[1]]), template)


async def test_the_tutorials_configuration_alerts_a_phone(database: Path, tmp_path: Path) -> None:
    """A server on loopback stands in for ntfy's: it takes the address and the body as ntfy does."""
    said: list[tuple[str, str, str]] = []

    async def publish(request: web.Request) -> web.Response:
        event = json.loads(await request.read())
        assert request.query["tpl"] == "1"
        title, message = (rendered(request.query[name], event) for name in ("t", "m"))
        said.append((request.path, title, message))
        return web.json_response({"event": "message"})

    app = web.Application()
    app.router.add_post("/{topic}", publish)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    (toml,) = re.findall(r"```toml\n(.*?)```", TUTORIAL, re.DOTALL)
    file = tmp_path / "edgebox.toml"
    file.write_text(toml.replace("https://ntfy.sh", f"http://127.0.0.1:{port}"), "utf-8")
    box = App(load(file, settings(database)))
    await box.start()
    try:
        async with streaming(box, "gate", **street()):
            await until(lambda: bool(said), "an alert")
    finally:
        await box.stop()
        await runner.cleanup()
    topic, title, message = said[0]
    assert (topic, title) == ("/gate-7391", "gate")
    assert re.fullmatch(r"\d+ person", message)


async def test_the_box_and_the_broker_of_the_compose_file_find_each_other(
    database: Path, tmp_path: Path
) -> None:
    compose = yaml.safe_load((DEPLOY / "broker/compose.yaml").read_text("utf-8"))
    box, broker = compose["services"]["edgebox"], compose["services"]["broker"]
    base = yaml.safe_load((ROOT / "compose.example.yaml").read_text("utf-8"))
    assert (DEPLOY / "broker" / box["extends"]["file"]).resolve() == ROOT / "compose.example.yaml"
    assert box["extends"]["service"] in base["services"]
    for mounted in (*box["volumes"], *broker["volumes"]):
        source = mounted.partition(":")[0]
        assert (
            source in compose["volumes"]
            or source == "./passwords"
            or (DEPLOY / "broker" / source).is_file()
        ), mounted
    # The broker reads its own configuration, with the container's folders moved to the test's.
    mosquitto = Broker(tmp_path, password="a secret")
    lines = (DEPLOY / "broker/mosquitto.conf").read_text("utf-8")
    own = (tmp_path / "mosquitto.conf").read_text("utf-8")
    user = re.findall(r"^user .*$", own, re.MULTILINE)
    lines = lines.replace("listener 1883", f"listener {mosquitto.port} 127.0.0.1")
    lines = lines.replace("/mosquitto/config/", f"{tmp_path}/")
    lines = lines.replace("/mosquitto/data/", f"{tmp_path}/")
    (tmp_path / "mosquitto.conf").write_text("\n".join([*user, lines]), "utf-8")
    await mosquitto.start()
    text = (DEPLOY / "broker/edgebox.toml").read_text("utf-8")
    mqtt = tomllib.loads(text)["mqtt"]
    assert mqtt["host"] in compose["services"]
    password = tmp_path / "password"
    password.write_text("a secret", "utf-8")
    text = text.replace(f'host = "{mqtt["host"]}"', f'host = "127.0.0.1"\nport = {mosquitto.port}')
    assert mqtt["password_env"] in box["environment"]
    text = text.replace(f'password_env = "{mqtt["password_env"]}"', 'password_file = "password"')
    text = text.replace(f'username = "{mqtt["username"]}"', 'username = "box"')
    file = tmp_path / "edgebox.toml"
    file.write_text(text, "utf-8")
    app = App(load(file, settings(database)))
    await app.start()
    try:
        async with (
            listening(mosquitto, "box", "a secret") as received,
            streaming(app, "gate", **street()),
        ):
            await received.says("edgebox/availability", "online")
            await until(lambda: "edgebox/camera/gate/picture" in received.last, "a picture")
    finally:
        await app.stop()
        await mosquitto.kill()


def test_the_flow_uses_topics_and_routes_that_exist() -> None:
    flow = {
        node["id"]: node
        for node in json.loads((DEPLOY / "node-red/edgebox.json").read_text("utf-8"))
    }
    for node in flow.values():
        assert all(target in flow for wire in node.get("wires", ()) for target in wire)
    topic = flow["edgebox-events"]["topic"]
    assert topic == Topics("edgebox").event("+")
    address = flow["edgebox-address"]["rules"][0]["to"]
    path = re.sub(r"' & payload\.camera & '", "{id}", address.strip("'")).split("8787")[1]
    assert path in {route.path for route in ROUTES if route.method == "GET"}


def test_home_assistants_entities_are_called_as_the_page_says() -> None:
    """Home Assistant makes an entity's id of its platform, device and name."""
    document = json.loads(
        device(Topics("edgebox"), "gate-2", ["person"], "box", "0.1.0", pictures=True)
    )
    ids = {
        "{}.{}_{}".format(
            entity["platform"],
            document["device"]["name"].replace("-", "_"),
            entity["name"].lower().replace(" ", "_"),
        )
        for entity in document["components"].values()
    }
    named = set(re.findall(r"\b(?:image|binary_sensor)\.gate_2_\w+", INTEGRATIONS))
    assert len(named) == 2
    assert named <= ids
