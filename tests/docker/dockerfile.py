"""Reads the Dockerfiles of this repository: instructions, stages, an image's configuration.

A subset of the Dockerfile language, that which our files use; whatever else stands in one is an
error here, so that nothing is passed over. Pure: `tests.docker.build` runs what is read here.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

KEYWORDS = frozenset(
    ("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN",
     "STOPSIGNAL", "USER", "VOLUME", "WORKDIR")
)  # fmt: skip
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S+))?\s+")
_VARIABLE = re.compile(r"\\\$|\$(\w+)|\$\{(\w+)(?::([-+])((?:[^{}]|\{[^}]*\})*))?\}")


class DockerfileError(Exception):
    """A Dockerfile says what is not understood here; the message names the line."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its keyword, its flags in order, the rest of its logical line."""

    line: int
    keyword: str
    flags: tuple[tuple[str, str], ...]
    rest: str

    @property
    def words(self) -> list[str]:
        """The arguments: those of the JSON form, or those that a shell would see."""
        return json_words(self.rest) or shlex.split(self.rest)

    def error(self, problem: str) -> DockerfileError:
        """Return an error that names this instruction."""
        return DockerfileError(f"line {self.line}: {self.keyword} {self.rest[:60]}: {problem}")


@dataclass(frozen=True, slots=True)
class Stage:
    """What stands from one FROM to the next."""

    base: str
    """The image or the stage it starts from, with all variables filled in."""
    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Healthcheck:
    """How Docker asks whether a container is healthy."""

    argv: tuple[str, ...]
    timeout_s: float
    start_period_s: float


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an image tells whoever runs it."""

    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "root"
    workdir: str = "/"
    volumes: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    stop_signal: str = "SIGTERM"
    healthcheck: Healthcheck | None = None
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Build arguments: RUN sees them, the running image does not."""

    @property
    def argv(self) -> list[str]:
        """What a container runs."""
        return [*self.entrypoint, *self.command]

    def expand(self, text: str) -> str:
        """Fill in variables; ENV wins over ARG, as in Docker."""
        return expand(text, {**self.arguments, **self.env})


def json_words(rest: str) -> list[str] | None:
    """Return the words of the JSON form; None if this is not it."""
    if not rest.startswith("["):
        return None
    try:
        found = json.loads(rest)
    except json.JSONDecodeError:
        return None
    return [str(word) for word in found]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Fill in `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}`; `\\$` is a dollar."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "\\$":
            return "$"
        found = variables.get(match[1] or match[2], "")
        if match[3] == "-":
            return found or expand(match[4], variables)
        if match[3] == "+":
            return expand(match[4], variables) if found else ""
        return found

    return _VARIABLE.sub(value, text)


def parse(text: str) -> list[Instruction]:
    """Return a Dockerfile's instructions.

    Raises:
        DockerfileError: an instruction is not one of `KEYWORDS`.
    """
    return [_instruction(line, logical) for line, logical in _logical_lines(text)]


def _logical_lines(text: str) -> Iterable[tuple[int, str]]:
    """Join continued lines; comments among them are dropped, as Docker does."""
    parts: list[str] = []
    start = 0
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        start = start if parts else number
        parts.append(raw.rstrip().removesuffix("\\"))
        if not raw.rstrip().endswith("\\"):
            yield start, "".join(parts).strip()
            parts = []
    if parts:
        raise DockerfileError(f"line {start}: the last line is to be continued")


def _instruction(line: int, logical: str) -> Instruction:
    keyword, _, rest = logical.partition(" ")
    rest = rest.lstrip()
    flags = []
    while match := _FLAG.match(rest):
        flags.append((match[1], match[2] or ""))
        rest = rest[match.end() :]
    found = Instruction(line, keyword.upper(), tuple(flags), rest)
    if found.keyword not in KEYWORDS:
        raise found.error("this instruction is not known here")
    return found


def stages(instructions: Iterable[Instruction], build_args: Mapping[str, str]) -> list[Stage]:
    """Return a Dockerfile's stages in order.

    Args:
        instructions: of the whole file.
        build_args: as `docker build --build-arg` gives them.

    Raises:
        DockerfileError: something other than ARG precedes the first FROM.
    """
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for instruction in instructions:
        if instruction.keyword == "FROM":
            base, *alias = expand(instruction.rest, arguments).split()
            if alias and (len(alias) != 2 or alias[0].upper() != "AS"):
                raise instruction.error("FROM image [AS name] is understood")
            found.append(Stage(base, alias[1] if alias else str(len(found)), ()))
        elif found:
            found[-1] = replace(found[-1], instructions=(*found[-1].instructions, instruction))
        elif instruction.keyword == "ARG":
            name, _, default = instruction.rest.partition("=")
            arguments[name] = build_args.get(name, expand(default, arguments))
        else:
            raise instruction.error("only ARG may precede FROM")
    return found


def configured(
    config: ImageConfig, instruction: Instruction, build_args: Mapping[str, str]
) -> ImageConfig:
    """Return an image's configuration after an instruction; RUN and COPY leave it as it is."""
    rest = config.expand(instruction.rest)
    changed: dict[str, Any] = {}
    match instruction.keyword:
        case "ARG":
            name, _, default = instruction.rest.partition("=")
            value = build_args.get(name, config.expand(default).strip("\"'"))
            changed["arguments"] = {**config.arguments, name: value}
        case "ENV":
            changed["env"] = {**config.env, **_pairs(rest)}
        case "LABEL":
            changed["labels"] = {**config.labels, **_pairs(rest)}
        case "USER":
            changed["user"] = rest
        case "WORKDIR":
            changed["workdir"] = posixpath.join(config.workdir, rest)
        case "VOLUME":
            changed["volumes"] = (*config.volumes, *(json_words(rest) or rest.split()))
        case "EXPOSE":
            ports = (int(word.partition("/")[0]) for word in rest.split())
            changed["ports"] = (*config.ports, *ports)
        case "STOPSIGNAL":
            changed["stop_signal"] = rest
        case "HEALTHCHECK":
            changed["healthcheck"] = _healthcheck(instruction)
        case "ENTRYPOINT":
            changed |= {"entrypoint": tuple(instruction.words), "command": ()}
        case "CMD":
            changed["command"] = tuple(instruction.words)
    return replace(config, **changed)


def _pairs(rest: str) -> dict[str, str]:
    return {name: value for name, _, value in (w.partition("=") for w in shlex.split(rest))}


def _healthcheck(instruction: Instruction) -> Healthcheck | None:
    keyword, _, rest = instruction.rest.partition(" ")
    if keyword == "NONE":
        return None
    argv = json_words(rest.strip())
    if keyword != "CMD" or argv is None:
        raise instruction.error('HEALTHCHECK ... CMD ["command", ...] is understood')
    flags = dict(instruction.flags)
    return Healthcheck(
        tuple(argv),
        _seconds(flags.get("timeout", "30s")),
        _seconds(flags.get("start-period", "0s")),
    )


def _seconds(text: str) -> float:
    unit = {"s": 1.0, "m": 60.0}[text[-1]]
    return float(text[:-1]) * unit


def image_config(
    stage: Stage, build_args: Mapping[str, str], earlier: Iterable[Stage] = ()
) -> ImageConfig:
    """Return what a stage is configured to do; it may start from one of the `earlier` stages.

    Any other base is taken to say nothing but a PATH.
    """
    config = ImageConfig()
    for base in earlier:
        if base.name == stage.base:
            config = replace(image_config(base, build_args, earlier), arguments={})
    for instruction in stage.instructions:
        config = configured(config, instruction, build_args)
    return config
