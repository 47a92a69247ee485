"""Builds an image's root folder from a Dockerfile, without a container engine.

Base images cannot be fetched without a registry: Debian's own packages stand in for them
(`base_root`). Their Python is of the asked minor version, in /usr instead of /usr/local.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.docker.container import Container, Limits, Mount
from tests.docker.context import copy_context
from tests.docker.dockerfile import (
    ImageConfig,
    Instruction,
    Stage,
    configured,
    parse,
    stages,
)

Say = Callable[[str], None]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
CERTIFICATES_INSIDE = "/run/build-certificates.crt"
"""Beside the image's own, which its packages may want to replace."""
RESOLVING = (Path("/etc/resolv.conf"), Path("/etc/hosts"))
PASSED_ON = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
"""Docker hands these to builds, too."""
_PYTHON_PACKAGES = "ca-certificates,netbase,tzdata,python{0},python{0}-venv,python3-pip"


class BuildError(Exception):
    """The image could not be built; the message says which instruction failed."""


def mirror(release: str) -> str:
    """Return where apt on this machine finds Debian's packages of a release.

    Raises:
        BuildError: apt knows of none.
    """
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Identifier: Packages"]
    if shutil.which("apt-get"):
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )
        for site, _, suite in (line.partition(" ") for line in lines):
            if suite == release:
                return site
    raise BuildError(f"apt here knows no mirror of Debian {release}: name one with --mirror")


def base_root(reference: str, cache: Path, mirror_url: str | None, say: Say) -> Path:
    """Return the folder with what stands in for a base image, made once.

    Raises:
        BuildError: nothing stands in for it, or debootstrap fails.
    """
    match = re.fullmatch(r"(?:python:(\d+\.\d+)-slim-([a-z]+)|debian:([a-z]+)-slim)", reference)
    if match is None:
        raise BuildError(f"nothing here stands in for the image {reference}")
    python, release = match[1], match[2] or match[3]
    root = cache / reference.replace(":", "-")
    if root.is_dir():
        return root
    say(f"debootstrap: Debian {release} stands in for {reference}")
    unfinished = root.with_name(f"{root.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    include = [f"--include={_PYTHON_PACKAGES.format(python)}"] if python else []
    command = ["debootstrap", "--variant=minbase", *include, release, str(unfinished)]
    with (cache / "debootstrap.log").open("wb") as log:
        done = subprocess.run(
            [*command, mirror_url or mirror(release)], stdout=log, stderr=log, check=False
        )
    if done.returncode:
        raise BuildError(f"debootstrap failed: {log.name} has more")
    if python:
        _like_python_image(unfinished, python)
    unfinished.rename(root)
    return root


def _like_python_image(root: Path, python: str) -> None:
    """Let Debian's Python be found and used as that of the image python:X."""
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/python{python}")
    # The image's pip installs wherever it is told to.
    (root / f"usr/lib/python{python}/EXTERNALLY-MANAGED").unlink(missing_ok=True)


class Builder:
    """Builds the stages of one Dockerfile."""

    def __init__(
        self,
        repository: Path,
        work: Path,
        cache: Path,
        *,
        build_args: Mapping[str, str],
        mirror_url: str | None,
        say: Say,
    ) -> None:
        """Prepare.

        Args:
            repository: what a build's context is taken from.
            work: where the stages' roots come to lie; empty.
            cache: what is worth keeping between builds: base images, downloads.
            build_args: as `docker build --build-arg` gives them.
            mirror_url: where debootstrap finds Debian; None: where apt does.
            say: told of each step.
        """
        self._repository = repository
        self._work = work
        self._cache = cache
        self._build_args = build_args
        self._mirror_url = mirror_url
        self._say = say
        self._built: dict[str, tuple[Path, ImageConfig]] = {}
        self._context = work / "context"

    def build(self, file: str) -> tuple[Path, ImageConfig]:
        """Build a Dockerfile; return the last stage's root and what it is configured to do.

        Raises:
            BuildError: an instruction failed.
            DockerfileError: one is not understood.
        """
        count = copy_context(self._repository, self._context)
        self._say(f"context: {count} files")
        found = stages(parse((self._repository / file).read_text("utf-8")), self._build_args)
        for stage in found:
            self._built[stage.name] = self._stage(stage)
        return self._built[found[-1].name]

    def _stage(self, stage: Stage) -> tuple[Path, ImageConfig]:
        root = self._work / f"stage-{stage.name}"
        if stage.base in self._built:
            base, config = self._built[stage.base]
            config = replace(config, arguments={})
        else:
            base = base_root(stage.base, self._cache, self._mirror_url, self._say)
            config = ImageConfig()
        subprocess.run(["cp", "--archive", "--reflink=auto", base, root], check=True)
        self._say(f"stage {stage.name} from {stage.base}")
        for instruction in stage.instructions:
            config = configured(config, instruction, self._build_args)
            match instruction.keyword:
                case "RUN":
                    self._run(root, config, instruction)
                case "COPY":
                    self._copy(root, config, instruction)
                case "WORKDIR":
                    (root / config.workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
        return root, config

    def _copy(self, root: Path, config: ImageConfig, instruction: Instruction) -> None:
        *sources, target = shlex.split(config.expand(instruction.rest))
        flags = dict(instruction.flags)
        if set(flags) - {"from"}:
            raise instruction.error("--from is the only flag understood")
        origin = self._built[flags["from"]][0] if "from" in flags else self._context
        place = root / (Path(config.workdir) / target).as_posix().lstrip("/")
        for source in sources:
            path = origin / source.lstrip("/")
            if not path.exists():
                raise BuildError(f"line {instruction.line}: COPY {source}: there is no such file")
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "--archive", f"{path}/.", place], check=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)

    def _run(self, root: Path, config: ImageConfig, instruction: Instruction) -> None:
        self._say("RUN " + " ".join(instruction.rest.split())[:90])
        mounts = [Mount(path, str(path), read_only=True) for path in RESOLVING if path.exists()]
        if CERTIFICATES.exists():
            mounts.append(Mount(CERTIFICATES, CERTIFICATES_INSIDE, read_only=True))
        mounts += [self._mount(flag, instruction) for flag in instruction.flags]
        env = {**self._network_env(), "HOME": "/root", **config.arguments, **config.env}
        log = self._work / "build.log"
        container = Container(
            root,
            env=env,
            user=config.user,
            workdir=config.workdir,
            mounts=mounts,
            limits=Limits(network=True, capabilities=True),
        )
        with log.open("ab") as output:
            status = container.run(["sh", "-c", instruction.rest], output)
        (root / CERTIFICATES_INSIDE.lstrip("/")).unlink(missing_ok=True)
        if status:
            tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-25:])
            raise BuildError(f"line {instruction.line}: RUN ended with {status}:\n{tail}")

    def _mount(self, flag: tuple[str, str], instruction: Instruction) -> Mount:
        name, value = flag
        options = dict(part.split("=", 1) for part in value.split(","))
        match name, options.get("type"):
            case "mount", "cache":
                folder = self._cache / "downloads" / options["target"].strip("/").replace("/", "-")
                folder.mkdir(parents=True, exist_ok=True)
                return Mount(folder, options["target"])
            case "mount", "bind":
                origin = self._built[options["from"]][0] if "from" in options else self._context
                source = origin / options.get("source", ".").lstrip("/")
                return Mount(source, options["target"], read_only=True)
        raise instruction.error(f"--{name}={value} is not understood")

    def _network_env(self) -> dict[str, str]:
        """What programs need to reach registries from here; a real build has it from its engine."""
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        names = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
        if CERTIFICATES.exists():
            env |= dict.fromkeys(names, CERTIFICATES_INSIDE)
        return env
