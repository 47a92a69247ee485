"""The Dockerfiles: they refer to what exists, start what exists, and say what the documents say.

`python -m tests.docker.verify` builds and runs the images; here their files are only read.
"""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from edgebox import healthcheck
from edgebox.commands.root import main
from edgebox.config.config_file import Config
from tests.docker.context import context_files, ignores
from tests.docker.dockerfile import (
    DockerfileError,
    ImageConfig,
    Stage,
    expand,
    image_config,
    json_words,
    parse,
    stages,
)

ROOT = Path(__file__).resolve().parents[2]
FILES = ("Dockerfile", "Dockerfile.jetson")
PAGE = (ROOT / "docs/how-to/docker.md").read_text("utf-8")


def all_stages(file: str) -> list[Stage]:
    return stages(parse((ROOT / file).read_text("utf-8")), {})


def image(file: str, target: str | None = None) -> ImageConfig:
    """Return what the last stage is configured to do, or the one of that name."""
    found = all_stages(file)
    stage = found[-1] if target is None else next(s for s in found if s.name == target)
    return image_config(stage, {}, found)


@pytest.fixture(scope="module")
def context() -> set[str]:
    """Return the files a build sees."""
    return set(context_files(ROOT))


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def tracked(*folders: str) -> set[str]:
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", *folders]
    return set(subprocess.run(git, check=True, capture_output=True, text=True).stdout.split())


def test_the_context_has_what_the_wheel_is_made_from(
    context: set[str], project: dict[str, Any]
) -> None:
    hatch = project["tool"]["hatch"]["build"]
    wanted = {"pyproject.toml", project["project"]["readme"], hatch["hooks"]["custom"]["path"]}
    wanted |= tracked("requirements")
    wanted |= {*project["project"]["license-files"], *hatch["targets"]["wheel"]["force-include"]}
    wanted |= {name for name in tracked("edgebox", "webui") if not name.startswith("webui/test/")}
    assert wanted - context == set()


def test_the_context_has_nothing_that_is_built_or_downloaded(context: set[str]) -> None:
    built = ("edgebox/web/page/", "webui/node_modules/", ".venv/", ".git/")
    assert [name for name in context if name.startswith(built) or "__pycache__" in name] == []


@pytest.mark.parametrize("file", FILES)
def test_what_is_copied_exists(file: str, context: set[str]) -> None:
    found = all_stages(file)
    names = [stage.name for stage in found]
    for at, stage in enumerate(found):
        for instruction in stage.instructions:
            flags = dict(instruction.flags)
            if instruction.keyword == "COPY" and "from" in flags:
                assert flags["from"] in names[:at], instruction
            elif instruction.keyword == "COPY":
                for source in instruction.words[:-1]:
                    assert source == "." or any(name.startswith(source) for name in context)


@pytest.mark.parametrize("file", FILES)
def test_the_base_has_a_python_that_edgebox_supports(file: str, project: dict[str, Any]) -> None:
    least = tuple(map(int, project["project"]["requires-python"].removeprefix(">=").split(".")))
    found = all_stages(file)
    bases = {stage.base for stage in found} - {stage.name for stage in found}
    versions = [re.match(r"python:(\d+)\.(\d+)-", base) for base in bases]
    assert versions
    assert all(found and (int(found[1]), int(found[2])) >= least for found in versions)


@pytest.mark.parametrize("file", FILES)
def test_it_starts_a_command_that_exists(file: str) -> None:
    config = image(file)
    assert config.argv[0] == "edgebox"
    command = main.commands[config.argv[1]]
    context = command.make_context(config.argv[1], config.argv[2:])
    assert context.params["host"] == "0.0.0.0"


@pytest.mark.parametrize("file", FILES)
def test_it_asks_for_its_health_where_the_box_answers(file: str) -> None:
    config = image(file)
    assert config.healthcheck is not None
    assert config.healthcheck.argv == ("python", "-m", healthcheck.__name__)
    assert config.ports == (Config().server.port,) == (healthcheck.PORT,)


@pytest.mark.parametrize("file", FILES)
def test_it_is_as_the_page_says(file: str) -> None:
    config = image(file)
    assert config.volumes == ("/data",)
    assert config.env["XDG_DATA_HOME"] == "/data" == config.env["HOME"] == config.workdir
    assert config.stop_signal == "SIGTERM"
    assert config.user in ("10001:10001", "edgebox")
    assert all(f"`{path}`" in PAGE for path in config.volumes)
    assert f"| port | {config.ports[0]};" in PAGE
    assert "10001:10001" in PAGE


def test_both_images_are_configured_alike() -> None:
    plain, jetson = (image(file) for file in FILES)
    assert {**plain.env, "NVIDIA_DRIVER_CAPABILITIES": ""} == {
        **jetson.env,
        "NVIDIA_DRIVER_CAPABILITIES": "",
    }
    assert plain.argv == jetson.argv
    assert plain.healthcheck is not None
    assert jetson.healthcheck is not None
    assert plain.healthcheck.argv == jetson.healthcheck.argv


@pytest.mark.parametrize("file", [*FILES, "docs/how-to/docker.md", "compose.example.yaml"])
def test_locks_exist(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    named = re.findall(r"REQUIREMENTS=\"?([a-z ]+)", text)
    named += re.findall(r"requirements/([a-z]+)\.txt", text)
    names = {name for found in named for name in found.split()}
    assert {name for name in names if not (ROOT / f"requirements/{name}.txt").exists()} == set()


def test_dependencies_are_a_layer_of_their_own() -> None:
    """The code comes last, without its dependencies: a change of it is a small layer."""
    found = {stage.name: stage for stage in all_stages("Dockerfile")}
    assert not [i for i in found["dependencies"].instructions if i.rest.startswith(". ")]
    runs = [i for i in found["camera"].instructions if i.keyword in ("COPY", "RUN")]
    assert [i.keyword for i in runs] == ["RUN", "COPY", "RUN"]
    assert dict(runs[1].flags)["from"] == "dependencies"
    assert "--no-deps" in runs[2].rest
    assert "edgebox-*.whl" in runs[2].rest


def test_the_image_of_a_camera_has_no_health_check() -> None:
    config = image("Dockerfile", "camera")
    assert config.healthcheck is None
    assert config.ports == ()
    assert config.argv[:2] == ["edgebox", "camera"]
    assert image("Dockerfile").healthcheck is not None


@pytest.mark.parametrize("file", FILES)
def test_it_is_labelled(file: str, project: dict[str, Any]) -> None:
    labels = image(file).labels
    about = project["project"]
    prefix = "org.opencontainers.image"
    assert labels[f"{prefix}.title"].startswith(about["name"])
    assert labels[f"{prefix}.description"] == about["description"]
    assert labels[f"{prefix}.licenses"] == about["license"]


PAGES = PAGE + (ROOT / "docs/how-to/jetson.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"--build-arg ([A-Z_]+)=", PAGES))))
def test_build_arguments_of_the_pages_exist(name: str) -> None:
    texts = [(ROOT / file).read_text("utf-8") for file in FILES]
    assert any(re.search(rf"^ARG {name}\b", text, re.MULTILINE) for text in texts)


def test_the_compose_file_repeats_nothing_of_the_image() -> None:
    compose = (ROOT / "compose.example.yaml").read_text("utf-8")
    assert "healthcheck" not in compose
    assert f":{Config().server.port}" in compose
    assert f":{image('Dockerfile').volumes[0]}" in compose
    assert "init: true" in compose


DOCKERFILE = """\
# A comment.
ARG BASE=debian:bookworm
FROM ${BASE} AS one
ARG WITH=
RUN --mount=type=cache,target=/root/.cache echo a \\
    # a comment among them
    && echo "${WITH:+[$WITH]}"
FROM one
ENV A=1 \\
    B="two words"
ENV C=$A-${D:-none}
WORKDIR /data
WORKDIR below
CMD ["x", "y z"]
"""


def test_a_dockerfile_is_read_as_docker_reads_it() -> None:
    first, last = stages(parse(DOCKERFILE), {"BASE": "debian:trixie"})
    assert (first.base, first.name, last.base) == ("debian:trixie", "one", "one")
    run = first.instructions[-1]
    assert run.flags == (("mount", "type=cache,target=/root/.cache"),)
    assert run.rest.split() == ["echo", "a", "&&", "echo", '"${WITH:+[$WITH]}"']
    config = image_config(last, {})
    assert (config.env["B"], config.env["C"]) == ("two words", "1-none")
    assert (config.workdir, config.argv) == ("/data/below", ["x", "y z"])
    assert image_config(first, {"WITH": "mqtt"}).arguments == {"WITH": "mqtt"}


def test_variables() -> None:
    known = {"A": "1", "EMPTY": ""}
    text = r"$A ${A} ${EMPTY:-x} ${EMPTY:+y} ${A:+[$A]} \$A $NONE."
    assert expand(text, known) == "1 1 x  [1] $A ."


@pytest.mark.parametrize("text", ["FROM a\nSHELL x", "RUN x\nFROM a", "FROM a b", "FROM a\nRUN \\"])
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(DockerfileError, match="line"):
        stages(parse(text), {})


def test_json_form() -> None:
    assert json_words('["a", "b"]') == ["a", "b"]
    assert json_words("[ -f x ] && y") is None


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("edgebox/commands/root.py", False),
        ("edgebox/web/page/index.html", True),
        ("edgebox/web/__pycache__/x.pyc", True),
        ("webui/node_modules/a/b.js", True),
        ("docs/a.md", True),
        ("jetson/onnxruntime_gpu.whl", False),
        ("jetson/notes.txt", True),
        ("models/street/street.onnx", False),
        ("models/street/train.py", True),
        ("models/vehicles/vehicles.onnx", False),
        ("models/vehicles/train.py", True),
        ("models/training/layers.py", True),
    ],
)
def test_dockerignore(path: str, ignored: bool) -> None:
    assert ignores((ROOT / ".dockerignore").read_text("utf-8").splitlines(), path) is ignored
