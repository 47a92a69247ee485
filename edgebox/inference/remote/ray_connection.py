"""The box's side of its Ray process: starts it, opens channels to it, ends it.

All executors of one cluster share a process. It starts with the first channel, and ends with the
last one. If it ends by itself, its channels break, and the next channel starts another one.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from typing import Any

from edgebox.domain.errors import ModelError
from edgebox.inference.child_environment import environment_without_secrets
from edgebox.inference.executor import ExecutorGoneError
from edgebox.inference.remote.ray_messages import Message, receive, send

CONNECT_S = 20.0
"""Time limit for starting the process and connecting to the cluster."""
_REFUSED_S = 10.0
"""A cluster that could not be used is not tried again for so long: all its executors ask at once,
and each attempt may take `CONNECT_S`."""
_LOOK_S = 5.0
"""Time limit for looking at the nodes of a cluster."""
_PROCESS_MODULE = "edgebox.inference.remote.ray_process"
_RAY_VARIABLES = "RAY_"
"""Begins the variables that configure Ray: its TLS, its token."""


class RayChannel:
    """A connection to one worker, or to the cluster."""

    def __init__(self, process: "_RayProcess", connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._closed = False

    def exchange(self, message: Message, limit_s: float | None = None) -> Message:
        """Send a request and wait for its answer; blocks.

        Args:
            message: the request.
            limit_s: time limit; None: until the channel is shut.

        Raises:
            TimeoutError: there is no answer in time; the channel cannot be used any more.
            ExecutorGoneError: the worker, the cluster or the process is gone.
            ModelError: the worker says why it cannot do it.
        """
        try:
            self._connection.settimeout(limit_s)
            send(self._connection, message)
            answer = receive(self._connection)
        except TimeoutError:
            raise
        except OSError:
            answer = None
        if answer is None:
            raise ExecutorGoneError("the connection to the Ray cluster has ended")
        if error := answer.header.get("error"):
            raise (ExecutorGoneError if answer.header.get("gone") else ModelError)(error)
        return answer

    def shut(self) -> None:
        """End it, in any thread: who waits for an answer is told at once, and its worker ends."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it and give it back. Idempotent."""
        self.shut()
        with _lock:
            if self._closed:
                return
            self._closed = True
            self._process.channels -= 1
            if self._process.channels == 0:
                self._process.stop()
        self._connection.close()


class _RayProcess:
    """A process that is connected to a cluster."""

    def __init__(self, address: str) -> None:
        self.channels = 0
        self._control, theirs = socket.socketpair()
        environment = environment_without_secrets()
        environment |= {k: v for k, v in os.environ.items() if k.startswith(_RAY_VARIABLES)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROCESS_MODULE, str(theirs.fileno()), address],
            pass_fds=[theirs.fileno()], env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        try:
            self._insist(address)
        except BaseException:
            self.stop()
            raise

    def _insist(self, address: str) -> None:
        self._control.settimeout(CONNECT_S)
        try:
            answer = receive(self._control)
        except TimeoutError:
            raise ModelError(
                f"the Ray cluster at {address} does not answer within {CONNECT_S:.0f} s: it hangs, "
                "or wants another token (RAY_AUTH_TOKEN) or TLS (RAY_USE_TLS)"
            ) from None
        if answer is None:
            raise ModelError(f"the Ray cluster at {address} cannot be used: its driver has ended")
        if error := answer.header.get("error"):
            raise ModelError(error)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def channel(self) -> RayChannel:
        """Open a channel.

        Raises:
            OSError: the process has ended.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        self.channels += 1
        return RayChannel(self, ours)

    def stop(self) -> None:
        """End it; its actors end with it."""
        self._control.close()
        self._process.kill()
        self._process.wait()


class _Cluster:
    """A cluster that channels are opened to, and the process that has them."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._starting = threading.Lock()
        """Held while a process starts: whoever wants this cluster waits for it."""
        self._process: _RayProcess | None = None
        self._refused = 0.0, ""
        """When the cluster could not be used, and why."""

    def channel(self) -> RayChannel:
        """Open a channel; blocks while a process starts.

        Raises:
            ModelError: the cluster cannot be used.
            OSError: the process has ended.
        """
        with self._starting:
            with _lock:
                process = self._process
                if process is not None and process.channels and process.is_alive:
                    return process.channel()
            process = self._start()
            with _lock:
                self._process = process
                return process.channel()

    def _start(self) -> _RayProcess:
        at_s, why = self._refused
        if why and time.monotonic() - at_s < _REFUSED_S:
            raise ModelError(why)
        try:
            process = _RayProcess(self._address)
        except ModelError as error:
            self._refused = time.monotonic(), str(error)
            raise
        self._refused = 0.0, ""
        return process


_lock = threading.Lock()
"""For the clusters and the numbers of channels; nothing waits while it is held."""
_clusters: dict[str, _Cluster] = {}


def open_channel(address: str) -> RayChannel:
    """Open a channel to a cluster; blocks while its process starts.

    Raises:
        ModelError: the cluster cannot be used; the message says why.
    """
    if find_spec("ray") is None:
        raise ModelError("kind = \"ray\" needs Ray: pip install 'edgebox[ray]'")
    with _lock:
        cluster = _clusters.setdefault(address, _Cluster(address))
    try:
        return cluster.channel()
    except OSError as error:
        raise ModelError(f"the connection to the Ray cluster has ended: {error}") from None


class RayClusterView:
    """Looks at how many workers a cluster has room for; keeps a channel for that."""

    def __init__(self, address: str, needs: dict[str, Any]) -> None:
        """Connect to nothing yet.

        Args:
            address: of the cluster.
            needs: resources of one worker, as JSON.
        """
        self._address = address
        self._needs = needs
        self._channel: RayChannel | None = None

    def workers(self) -> int:
        """Return how many workers the nodes have room for, by their total resources; blocks.

        Raises:
            ModelError: the cluster cannot be used.
        """
        channel = self._channel = self._channel or open_channel(self._address)
        try:
            answer = channel.exchange(Message({"do": "count", "needs": self._needs}), _LOOK_S)
        except (TimeoutError, ModelError) as error:
            self.close()
            text = f"the Ray cluster at {self._address} does not say what it has: {error}"
            raise ModelError(text) from None
        return int(answer.header["count"])

    def close(self) -> None:
        """Disconnect. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
