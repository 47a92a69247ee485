"""Runs programs in a root of their own as a container engine does, with nothing but util-linux.

A container has its own mounts, process numbers and, unless it is being built, network; its first
program is process 1, which matters for signals. Needs Linux and root.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ADDRESS = "192.0.2.1"
"""A container's own address, from the range that is kept for examples."""
PUBLISHED = "198.51.100.7"
"""The address of the machine that publishes its port; the container cannot know it."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
NEEDED = ("unshare", "nsenter", "mount", "chroot", "ip", "cp")

_FETCH = """
import json, sys, urllib.error, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    headers = {"Host": sys.argv[2]}
    if sys.argv[3]:
        headers["Authorization"] = f"Bearer {sys.argv[3]}"
    request = urllib.request.Request(sys.argv[1], headers=headers)
    with opener.open(request, timeout=10) as answer:
        found = [answer.status, answer.read().decode()]
except urllib.error.HTTPError as error:
    found = [error.code, error.read().decode()]
except OSError as error:
    found = [0, str(error)]
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or a file that a container sees at `target`."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may do."""

    read_only: bool = False
    """Its root cannot be written, except for what is mounted there and /tmp."""
    network: bool = False
    """It uses the machine's network, as a build does; otherwise it has one of its own."""
    capabilities: bool = False
    """It keeps root's, and may gain more; otherwise it has none for ever."""


def identity(root: Path, user: str) -> tuple[int, int, list[int]]:
    """Return the numbers of a USER: itself, its group, and its further groups if it is a name."""
    name, _, group = user.partition(":")
    passwd = [line.split(":") for line in (root / "etc/passwd").read_text().splitlines()]
    groups = [line.split(":") for line in (root / "etc/group").read_text().splitlines()]
    row = next((row for row in passwd if name in (row[0], row[2])), None)
    uid = int(row[2]) if row else int(name)
    if group:
        found = next((row for row in groups if group in (row[0], row[2])), None)
        return uid, int(found[2]) if found else int(group), []
    further = [int(of[2]) for of in groups if row and row[0] in of[3].split(",")]
    return uid, int(row[3]) if row else 0, further


def _inside(
    root: Path, env: Mapping[str, str], user: str, workdir: str, limits: Limits
) -> list[str]:
    """Return what goes before a command that is to run in a root."""
    uid, gid, further = identity(root, user)
    out = ["env", "-i", f"--chdir={workdir}", *(f"{key}={value}" for key, value in env.items())]
    out += ["setpriv", f"--reuid={uid}", f"--regid={gid}"]
    out += [f"--groups={','.join(map(str, further))}" if further else "--clear-groups"]
    if not limits.capabilities:
        out += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    return [*out, "--"]


def _prepare(root: Path, mounts: Sequence[Mount], limits: Limits) -> list[str]:
    """Return the shell lines that mount a root in a mount namespace of its own."""
    at = shlex.quote(str(root))
    lines = ["set -e", "mount --make-rprivate /", f"mount --bind {at} {at}"]
    # Its own process numbers, its own devices: a few of the machine's, and shared memory.
    lines += [f"mount -t proc proc {at}/proc", f"mount -t sysfs -o ro sysfs {at}/sys"]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {at}/dev", f"mkdir {at}/dev/shm {at}/dev/pts"]
    lines += [f"mount -t tmpfs -o mode=1777 tmpfs {at}/dev/shm", f"ln -s /proc/self/fd {at}/dev/fd"]
    lines += [f"touch {at}/dev/{of}; mount --bind /dev/{of} {at}/dev/{of}" for of in DEVICES]
    lines += [f"mount -t tmpfs -o mode=1777 tmpfs {at}/tmp"]
    for mount in mounts:
        target = shlex.quote(f"{root}{mount.target}")
        lines.append(f"mount --bind {shlex.quote(str(mount.source))} {target}")
        if mount.read_only:
            lines.append(f"mount -o remount,bind,ro {target}")
    if limits.read_only:
        lines.append(f"mount -o remount,bind,ro {at}")
    if not limits.network:
        lines += ["ip link set lo up", f"ip address add {ADDRESS}/32 dev lo"]
    return lines


class Container:
    """One container: a root, mounts, and whoever runs in it."""

    def __init__(
        self,
        root: Path,
        *,
        env: Mapping[str, str],
        user: str = "root",
        workdir: str = "/",
        mounts: Sequence[Mount] = (),
        limits: Limits = Limits(),
    ) -> None:
        """Take notes; nothing runs yet. What is mounted must have a place in the root."""
        self.root = root
        self._env = env
        self._user = user
        self._workdir = workdir
        self._mounts = mounts
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, argv: Sequence[str], output: IO[bytes] | None = None) -> None:
        """Start the first program; it is process 1."""
        for mount in self._mounts:
            place = self.root / mount.target.lstrip("/")
            if mount.source.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            elif not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()
        namespaces = ["--mount", "--pid", "--ipc", "--uts"]
        namespaces += [] if self._limits.network else ["--net"]
        inner = _inside(self.root, self._env, self._user, self._workdir, self._limits)
        command = shlex.join(["chroot", str(self.root), *inner, *argv])
        script = "\n".join([*_prepare(self.root, self._mounts, self._limits), f"exec {command}"])
        self._process = subprocess.Popen(
            ["unshare", *namespaces, "--fork", "--kill-child=KILL", "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
        )

    def run(self, argv: Sequence[str], output: IO[bytes] | None = None) -> int:
        """Run a program to its end; return its status."""
        self.start(argv, output)
        assert self._process is not None
        return self._process.wait()

    @property
    def pid(self) -> int:
        """Process 1, by the machine's numbers; 0 while there is none."""
        assert self._process is not None
        unshare = self._process.pid
        try:
            children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        except OSError:
            return 0
        return int(children[0]) if children else 0

    @property
    def running(self) -> bool:
        """Whether process 1 has not ended."""
        return self._process is not None and self._process.poll() is None

    def begin(self, argv: Sequence[str]) -> subprocess.Popen[str]:
        """Start a further program inside, as `docker exec` does."""
        inner = _inside(self.root, self._env, self._user, self._workdir, self._limits)
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--ipc"]
        return subprocess.Popen(
            [*enter, "chroot", str(self.root), *inner, *argv],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def execute(self, argv: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run a further program inside to its end, or kill it; its status is then negative."""
        process = self.begin(argv)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def fetch(self, path: str, port: int, host: str = ADDRESS, token: str = "") -> tuple[int, str]:
        """Ask over HTTP for a path at the container's own address, as another machine does.

        Args:
            path: what is asked for.
            port: where.
            host: the address that whoever asks knows it by.
            token: the token of whoever asks; empty: none.

        Returns:
            The status, 0 if nobody answers, and what was answered.
        """
        pid = self.pid
        if not pid:
            return 0, "it does not run"
        done = subprocess.run(
            ["nsenter", f"--target={pid}", "--net", sys.executable, "-c", _FETCH,
             f"http://{ADDRESS}:{port}{path}", f"{host}:{port}", token],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        if done.returncode:
            return 0, done.stderr
        status, body = json.loads(done.stdout)
        return status, body

    def stop(self, stop_signal: str, timeout_s: float) -> tuple[int | None, float]:
        """Send a signal to process 1; return its status and how long it took, in s.

        The status is None if it did not end in time; then it is killed.
        """
        assert self._process is not None
        start_s = time.monotonic()
        os.kill(self.pid, signal.Signals[stop_signal])
        try:
            status: int | None = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            status = None
            self.kill()
        return status, time.monotonic() - start_s

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self.running:
            assert self._process is not None
            self._process.kill()
            self._process.wait()
