"""The example file and the reference say what the code does."""

import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

from edgebox.config.config_file import Config, keys, load
from edgebox.config.executor_section import ExecutorParameters
from edgebox.config.keys import KeyInfo
from edgebox.config.notification_sections import DetectionParameters, WebhookParameters
from edgebox.config.pipeline_section import StageParameters
from edgebox.config.tracking_sections import LineParameters, ZoneParameters
from tests.config.test_config_file import written

ROOT = Path(__file__).resolve().parents[2]
REPEATED = {key.section for key in keys() if key.repeated}


def test_the_example_file_holds_every_key_at_its_default() -> None:
    path = ROOT / "config.example.toml"
    example = tomllib.loads(path.read_text(encoding="utf-8"))
    plain = {
        section: {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
        for section, values in asdict(Config()).items()
        if section not in {*REPEATED, "origins", "source"}
    }
    assert example == plain
    assert load(path) == Config()


def test_what_the_example_shows_of_repeated_sections_is_one_at_its_defaults(
    tmp_path: Path,
) -> None:
    lines = (ROOT / "config.example.toml").read_text(encoding="utf-8").splitlines()
    wanted = re.compile(r"# (\[\[[\w.]+\]\]|\w+ = .*)")
    shown = [line.removeprefix("# ") for line in lines if wanted.fullmatch(line)]
    config = load(written(tmp_path, "\n".join(shown)))
    assert config.executors == (ExecutorParameters(),)
    assert config.detections == (DetectionParameters(),)
    ((stage,),) = (pipeline.stages for pipeline in config.pipelines)
    assert replace(stage, name="", family="") == StageParameters()
    (webhook,) = config.webhooks
    assert replace(webhook, url="") == WebhookParameters()
    (zone,), (line,) = config.zones, config.lines
    assert replace(zone, name="", points=()) == ZoneParameters()
    assert replace(line, name="", points=()) == LineParameters()


def test_the_example_file_explains_every_key() -> None:
    lines = (ROOT / "config.example.toml").read_text(encoding="utf-8").splitlines()
    words = " ".join(" ".join(line.removeprefix("# ") for line in lines).split())
    for key in keys():
        assert f"{key.doc} {key.name} = " in words


def row(key: KeyInfo) -> str:
    return f"| `{key.name}` | `{key.default}` | {key.expected} | {key.doc} |"


def test_the_reference_says_what_the_code_does() -> None:
    text = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    sections = {part.split("]")[0].lstrip("["): part for part in text.split("\n## [")[1:]}
    assert list(sections) == list(dict.fromkeys(key.section for key in keys()))
    for section, part in sections.items():
        rows = [line for line in part.splitlines() if line.startswith("| `")]
        assert rows == [row(key) for key in keys() if key.section == section]
