"""The Compose files for two machines: they name files that exist, and agree with each other."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgebox import healthcheck
from edgebox.config.config_file import load

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/two-machines"
NOT_HERE = {"accelerator.token"}
"""Made by who starts it, as the page says."""


def service(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / name).read_text("utf-8"))["services"]["edgebox"])


@pytest.mark.parametrize("name", ["cameras", "accelerator"])
def test_what_is_mounted_exists_and_the_configuration_loads(name: str) -> None:
    found = service(f"{name}.yaml")
    files = [text.split(":") for text in found["volumes"] if text.startswith("./")]
    assert {source[2:] for source, *_ in files} <= {p.name for p in FOLDER.iterdir()} | NOT_HERE
    targets = {target: source for source, target, _ in files}
    load(FOLDER / targets[found["environment"]["EDGEBOX_CONFIG"]])


def test_both_machines_agree() -> None:
    (_, remote) = load(FOLDER / "cameras.toml").executors
    server = load(FOLDER / "accelerator.toml").server
    assert server.tls == "self-signed"
    assert remote.url == f"https://{server.name}:{server.port}"
    assert remote.fingerprint
    (host,) = service("cameras.yaml")["extra_hosts"]
    assert host.startswith(f"{server.name}:")
    assert server.port == healthcheck.PORT
    for source, target in [text.split(":")[:2] for text in service("cameras.yaml")["volumes"]]:
        if source == f"./{Path(remote.token_file).name}":
            assert Path(target).parent == Path("/etc/edgebox")
            break
    else:
        pytest.fail("the token is not mounted")


def test_both_are_as_confined_as_the_example() -> None:
    example = yaml.safe_load((ROOT / "compose.example.yaml").read_text("utf-8"))["services"][
        "edgebox"
    ]
    found = service("cameras.yaml")
    same = (
        "init",
        "read_only",
        "tmpfs",
        "cap_drop",
        "security_opt",
        "restart",
        "stop_grace_period",
    )
    assert {key: found[key] for key in same} == {key: example[key] for key in same}
    assert service("accelerator.yaml")["extends"]["service"] == "edgebox"
    assert (FOLDER / service("accelerator.yaml")["extends"]["file"]).exists()
