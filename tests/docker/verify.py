"""Checks what the images do, without a container engine: `python -m tests.docker.verify`.

Builds the image as its Dockerfile says, in a clean Debian root, then runs it as docker.md
does: as the image's user, without capabilities, with a root that cannot be written, a volume for
data and /tmp. There it starts, serves a camera, is healthy, stops on its signal and finds its data
again. Needs Linux, root, debootstrap and util-linux, and reaches Debian's mirror, PyPI and npm as
this machine is configured to.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tests.docker.build import Builder, BuildError
from tests.docker.container import NEEDED, PUBLISHED, Container, Limits, Mount
from tests.docker.dockerfile import DockerfileError, ImageConfig

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path("/var/cache/edgebox-images")
CAMERA = "gate"
STREAM = ["edgebox", "camera", "scene:7", "--name", CAMERA, "--json"]
STREAM += ["--rate-hz", "5", "--slo-ms", "1000"]
STREAMS_S = 15
READY_WITHIN_S = 300.0
STOP_WITHIN_S = 10.0
"""docs/how-to/docker.md says so; Docker kills after as long."""
ON_TIME_MIN = 0.9
COMPLAINTS = ("Traceback", "Read-only file system", "Permission denied", "Errno")


class Checks:
    """What was found, check by check."""

    def __init__(self) -> None:
        self.failed = 0

    def check(self, name: str, good: bool, found: object) -> None:
        """Print one result, and count it if it is bad."""
        self.failed += not good
        click.echo(f"{'ok    ' if good else 'FAILED'} {name}: {found}")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of who checks a box, and of the camera that streams to it."""

    admin: str
    camera: str


class Image:
    """A built image with a volume, as `docker run` would use it."""

    def __init__(self, root: Path, config: ImageConfig, work: Path) -> None:
        """Make the volumes; as Docker does, with what the image has at their places."""
        self.root = root
        self.config = config
        self._work = work
        self._mounts = []
        for at, target in enumerate(config.volumes):
            volume = work / f"volume-{at}"
            place = root / target.lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "--archive", place, volume], check=True)
            self._mounts.append(Mount(volume, target))
        self.log = work / "container.log"

    @property
    def volume(self) -> Path:
        """The first volume's folder on this machine."""
        return self._mounts[0].source

    def container(self) -> Container:
        """Return a new container with the same volumes."""
        return Container(
            self.root,
            env={"HOME": "/", **self.config.env},
            user=self.config.user,
            workdir=self.config.workdir,
            mounts=self._mounts,
            limits=Limits(read_only=True),
        )

    def started(self) -> Container:
        """Start what the image starts."""
        container = self.container()
        with self.log.open("ab") as output:
            container.start(self.config.argv, output)
        return container


def wait_for(question: Callable[[], bool], timeout_s: float) -> float | None:
    """Ask until the answer is yes; return after how long, in s, or None."""
    start_s = time.monotonic()
    while time.monotonic() < start_s + timeout_s:
        if question():
            return time.monotonic() - start_s
        time.sleep(0.2)
    return None


def check_start(image: Image, container: Container, checks: Checks) -> bool:
    """Wait until it answers and is ready; check the health check before and after."""
    health, port = image.config.healthcheck, image.config.ports[0]
    assert health is not None

    def answers(path: str) -> bool:
        return container.running and container.fetch(path, port)[0] == 200

    alive_s = wait_for(lambda: answers("/healthz"), health.start_period_s)
    checks.check("answers within the start period", alive_s is not None, alive_s)
    ready_s = wait_for(lambda: answers("/readyz"), READY_WITHIN_S) if alive_s else None
    checks.check("gets ready", ready_s is not None, ready_s)
    if ready_s is None:
        return False
    done = container.execute(health.argv, health.timeout_s)
    checks.check("HEALTHCHECK says healthy", done.returncode == 0, done.stderr[-200:] or "status 0")
    done = container.execute(["edgebox", "doctor"], 60)
    message = done.stdout + done.stderr
    checks.check(
        "doctor runs", "Traceback" not in message and len(message) > 0, message.strip()[-80:]
    )
    status, body = container.fetch("/", port)
    checks.check("serves its page", status == 200 and "<script" in body, f"status {status}")
    status, _ = container.fetch("/", port, PUBLISHED)
    checks.check("serves it where its port is published", status == 200, f"status {status}")
    return True


def check_confinement(container: Container, config: ImageConfig, checks: Checks) -> None:
    """Check who runs, as what, and where it can write."""
    lines = Path(f"/proc/{container.pid}/status").read_text().splitlines()
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    checks.check("is process 1", fields["NSpid"].split()[-1] == "1", fields["Name"])
    checks.check(
        "is not root", "0" not in fields["Uid"].split(), f"user {fields['Uid'].split()[0]}"
    )
    checks.check("has no capabilities", int(fields["CapEff"], 16) == 0, fields["CapEff"])
    writable = [
        place for place in ("/", "/opt/edgebox", "/etc", "/usr", "/tmp", *config.volumes)
        if container.execute(["touch", f"{place}/.written"], 10).returncode == 0
    ]  # fmt: skip
    checks.check("writes only where documented", writable == ["/tmp", *config.volumes], writable)


def new_token(container: Container, name: str, scope: str) -> str:
    """Return a token, made in the container as `docker exec` does it.

    Raises:
        ClickException: none was made.
    """
    argv = ["edgebox", "tokens", "add", name, "--scope", scope, "--json"]
    done = container.execute(argv, 60)
    try:
        return str(json.loads(done.stdout)["token"])
    except (json.JSONDecodeError, KeyError) as error:
        raise click.ClickException(f"{' '.join(argv)}: {done.stdout}{done.stderr}") from error


def with_token(argv: Sequence[str], token: str) -> list[str]:
    """Return a command that has a token, as `docker exec -e EDGEBOX_TOKEN=...` gives it."""
    return ["env", f"EDGEBOX_TOKEN={token}", *argv]


def check_access(container: Container, port: int, token: str, checks: Checks) -> None:
    """Check that nobody can use the box without a token."""
    closed, _ = container.fetch("/v1/cameras", port)
    opened, _ = container.fetch("/v1/cameras", port, token=token)
    checks.check("wants a token", (closed, opened) == (401, 200), f"{closed}, with one {opened}")


def check_camera(container: Container, token: str, checks: Checks) -> None:
    """Stream a camera, from the same image, and count what came back in time."""
    done = container.execute(with_token([*STREAM, "--duration", str(STREAMS_S)], token), 120)
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        checks.check("a camera streams", False, (done.stdout + done.stderr)[-500:])
        return
    captured, on_time = found["captured"], found["on_time"]
    good = captured > 0 and on_time >= ON_TIME_MIN * captured
    checks.check("a camera's frames are answered in time", good, f"{on_time} of {captured}")


def cameras_of(container: Container, port: int, token: str) -> list[dict[str, Any]]:
    """Return the cameras that the box knows."""
    found: list[dict[str, Any]] = json.loads(container.fetch("/v1/cameras", port, token=token)[1])[
        "cameras"
    ]
    return found


def remembered(container: Container, port: int, token: str) -> dict[str, int]:
    """Return how much the box knows of what was before: cameras, and rows by table."""
    cameras = cameras_of(container, port, token)
    system = json.loads(container.fetch("/v1/system", port, token=token)[1])
    return {"cameras": len(cameras), **system["storage"]["rows"]}


def check_stop(image: Image, container: Container, tokens: Tokens, checks: Checks) -> None:
    """Stop it as Docker does, while a camera streams."""
    port = image.config.ports[0]

    def streaming() -> bool:
        cameras = cameras_of(container, port, tokens.admin)
        return any(camera["connected"] for camera in cameras)

    camera = container.begin(with_token(STREAM, tokens.camera))
    started_s = wait_for(streaming, 30)
    status, took_s = container.stop(image.config.stop_signal, STOP_WITHIN_S)
    # The camera was in the container, too: it ends with it.
    camera.communicate(timeout=30)
    checks.check(
        f"ends on {image.config.stop_signal} while a camera streams",
        status == 0 and started_s is not None,
        f"status {status} after {took_s:.1f} s",
    )


def check_restart(image: Image, before: dict[str, int], tokens: Tokens, checks: Checks) -> None:
    """Start it again on the same volume: what it knew it still knows, the tokens too."""
    container = image.started()
    try:
        if not check_start(image, container, checks):
            return
        after = remembered(container, image.config.ports[0], tokens.admin)
        kept = {name: (count, after.get(name, 0)) for name, count in before.items()}
        good = before["cameras"] > 0 and all(now >= then for then, now in kept.values())
        checks.check("knows after a restart what it knew", good, kept)
        check_stop(image, container, tokens, checks)
    finally:
        container.kill()


def verify(image: Image, checks: Checks) -> None:
    """Run an image through its life."""
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in [image.volume]}
    checks.check("the volume belongs to the image's user", owners != {(0, 0)}, owners)
    container = image.started()
    try:
        if check_start(image, container, checks):
            check_confinement(container, image.config, checks)
            port = image.config.ports[0]
            tokens = Tokens(
                new_token(container, "verify", "admin"), new_token(container, CAMERA, "camera")
            )
            check_access(container, port, tokens.admin, checks)
            check_camera(container, tokens.camera, checks)
            before = remembered(container, port, tokens.admin)
            check_stop(image, container, tokens, checks)
            check_restart(image, before, tokens, checks)
    finally:
        container.kill()
    text = image.log.read_text("utf-8", "replace")
    complaints = [line for line in text.splitlines() if any(of in line for of in COMPLAINTS)]
    checks.check("logs no complaint about where it runs", not complaints, complaints[:5] or "none")
    if checks.failed:
        click.echo(f"--- what it logged:\n{text[-3000:]}")


def missing() -> list[str]:
    """Return what this machine lacks for all this."""
    out = [name for name in (*NEEDED, "debootstrap") if shutil.which(name) is None]
    if sys.platform != "linux":
        out.append("Linux")
    elif os.geteuid() != 0:
        out.append("root")
    return out


@click.command()
@click.option("--file", "file", default="Dockerfile", show_default=True, help="Which Dockerfile.")
@click.option("--build-arg", "build_args", multiple=True, help="NAME=VALUE, as for docker build.")
@click.option(
    "--cache", type=click.Path(path_type=Path), default=CACHE, show_default=True,
    help="Keeps base images and downloads.",
)  # fmt: skip
@click.option("--mirror", help="Where debootstrap finds Debian, if not where apt here does.")
@click.option("--keep", is_flag=True, help="Keep what was built, to look at it.")
def main(
    file: str, build_args: Sequence[str], cache: Path, mirror: str | None, *, keep: bool
) -> None:
    """Build an image without an engine, run it, and check what docs/how-to/docker.md promises."""
    if lacking := missing():
        raise click.ClickException(f"this needs {', '.join(lacking)}")
    arguments = dict(argument.split("=", 1) for argument in build_args)
    cache.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="image-", dir=cache))
    checks = Checks()
    try:
        builder = Builder(
            REPOSITORY, work, cache, build_args=arguments, mirror_url=mirror, say=click.echo
        )
        root, config = builder.build(file)
        verify(Image(root, config, work), checks)
    except (BuildError, DockerfileError) as error:
        raise click.ClickException(f"{file}: {error}") from error
    finally:
        if keep:
            click.echo(f"kept in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    if checks.failed:
        raise click.ClickException(f"{file}: {checks.failed} checks failed")
    click.echo(f"{file}: all is as documented")


if __name__ == "__main__":
    main()
