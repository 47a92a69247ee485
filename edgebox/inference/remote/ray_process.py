"""The process of a box that is a driver of a Ray cluster: the only one that imports Ray.

Ray's library ends the process that uses it when the cluster's head is gone for a minute, may hang
while it connects, and takes over signals and logging. So it has a process of its own, which the box
can end at any time.

The box sends sockets, each of which is one channel (`ray_connection`). An actor lives as long as
its channel: when the box closes it, or ends, the actor is killed.
"""

import contextlib
import importlib
import logging
import os
import platform
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

from edgebox import __version__
from edgebox.inference.remote.ray_messages import Message, receive, send
from edgebox.inference.remote.ray_worker import FamilyFiles, RayWorker, read_files

_GUESSES = " Some common causes include"
"""Begins what Ray says of every worker that ends."""
_REACH_S = 5.0
"""Time limit for the head's port: Ray itself tries for more than a minute."""


class Cluster:
    """A cluster that this process is connected to."""

    def __init__(self, address: str) -> None:
        """Connect; blocks.

        Raises:
            Exception: whatever Ray or the network says.
        """
        host, _, port = address.rpartition(":")
        if host:
            socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
        # Set before the import, which reads it: nothing about the use of Ray is sent anywhere.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray: Any = importlib.import_module("ray")
        self._ray = ray
        ray.init(
            address=address,
            namespace="edgebox",
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        # Two calls at once: a family is added while batches run.
        self._actor = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=2)(RayWorker)
        self.actors: dict[str, Any] = {}
        """The actors by the names that the box has for them."""
        self._stored: dict[str, Any] = {}
        """A reference to each family's files, by its hashes."""
        self._lock = threading.Lock()

    def workers(self, needs: Mapping[str, Any]) -> int:
        """Return how many workers with these needs the cluster's nodes have room for, by their
        total resources."""
        wanted = {"CPU": needs["num_cpus"], "GPU": needs["num_gpus"], **needs["resources"]}
        wanted = {of: amount for of, amount in wanted.items() if amount}
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        rooms = [[int(has.get(of, 0) / n) for of, n in wanted.items()] for has in nodes]
        return sum(min(room, default=1) for room in rooms)

    def described(self) -> str:
        """Return what the cluster has, in words."""
        has = self._ray.cluster_resources()
        shown = [
            f"{of} {has[of]:g}"
            for of in sorted(has)
            if ":" not in of and of not in ("memory", "object_store_memory")
        ]
        nodes = sum(bool(node["Alive"]) for node in self._ray.nodes())
        return f"{nodes} nodes with {', '.join(shown) or 'neither CPU nor GPU'}"

    def worker(self, needs: Mapping[str, Any]) -> Any:
        """Begin to place an actor; return its handle at once."""
        return self._actor.options(
            num_cpus=needs["num_cpus"],
            num_gpus=needs["num_gpus"],
            resources=needs["resources"],
            scheduling_strategy="SPREAD",
        ).remote()

    def kill(self, actor: Any) -> None:
        """End an actor, whatever it does."""
        self._ray.kill(actor, no_restart=True)

    def stored(self, family: Mapping[str, Any]) -> Any:
        """Return a reference to a family's files, which are put into the cluster once.

        Raises:
            OSError: they cannot be read.
        """
        key = _key(family)
        with self._lock:
            if key not in self._stored:
                files: FamilyFiles = read_files(family)
                self._stored[key] = self._ray.put(files)
            return self._stored[key]

    def forget(self, families: Sequence[Mapping[str, Any]]) -> None:
        """Keep the files of families in the cluster no more; those who use them still have them."""
        with self._lock:
            for family in families:
                self._stored.pop(_key(family), None)

    def failure(self, error: BaseException) -> Message:
        """Return an error of a call as a message."""
        gone = isinstance(error, self._ray.exceptions.RayActorError)
        text = str(error)
        if "No module named 'edgebox" in text:
            text = (
                f"the worker's node has no edgebox: install edgebox {__version__} there, in the "
                "environment that Ray runs in"
            )
        elif gone:
            text = f"the worker has ended: {_brief(error)}"
        else:
            text = f"the call failed: {_brief(error)}"
        return Message({"error": text, "gone": gone})


def _key(family: Mapping[str, Any]) -> str:
    """Return what identifies a family's files."""
    return sha256(orjson.dumps(family, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _brief(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else type(error).__name__
    return last.partition(_GUESSES)[0][:300]


class Channel:
    """Serves one connection of the box: one request at a time."""

    def __init__(self, cluster: Cluster, connection: socket.socket) -> None:
        """Serve nothing yet."""
        self._cluster = cluster
        self._connection = connection
        self._actor: Any = None
        self._name = ""

    def serve(self) -> None:
        """Serve until the box closes the channel; blocks."""
        while (message := self._next()) is not None:
            try:
                self._handle(message)
            except Exception as error:  # the box is told of any error
                self._answer(self._cluster.failure(error))
        if self._actor is not None:
            del self._cluster.actors[self._name]
            self._cluster.kill(self._actor)
        self._connection.close()

    def _next(self) -> Message | None:
        """Return the next request; None: the box has closed the channel."""
        try:
            return receive(self._connection)
        except OSError:
            return None

    def _handle(self, message: Message) -> None:
        order = message.header
        match order["do"]:
            case "run":
                self._call(self._actor, "run", orjson.dumps(order), *message.buffers)
            case "count":
                self._answer(Message({"count": self._cluster.workers(order["needs"])}))
            case "open":
                self._open(order)
            case "add":
                self._call_worker("add", order, *self._files(order))
            case "drop":
                self._cluster.forget(order["families"])
                self._call_worker("drop", order)

    def _open(self, order: Mapping[str, Any]) -> None:
        if self._cluster.workers(order["needs"]) == 0:
            text = f"no node of the cluster has room for it ({self._cluster.described()})"
            self._answer(Message({"error": text}))
            return
        files = self._files(order)
        self._name = order["worker"]
        self._actor = self._cluster.actors[self._name] = self._cluster.worker(order["needs"])
        self._call(self._actor, "open", order, *files)

    def _call_worker(self, method: str, order: Mapping[str, Any], *files: Any) -> None:
        """Call the worker of another channel, which may be running a batch."""
        actor = self._cluster.actors.get(order["worker"])
        if actor is None:
            self._answer(Message({"error": "its worker has ended"}))
            return
        self._call(actor, method, order, *files)

    def _files(self, order: Mapping[str, Any]) -> list[Any]:
        return [self._cluster.stored(family) for family in order["families"]]

    def _call(self, actor: Any, method: str, *args: Any) -> None:
        """Call the actor; what it says is answered from Ray's thread, so none waits for it."""
        future = getattr(actor, method).remote(*args).future()
        future.add_done_callback(self._done)

    def _done(self, future: Any) -> None:
        error = future.exception()
        if error is not None:
            self._answer(self._cluster.failure(error))
            return
        header, buffers = future.result()
        self._answer(Message(orjson.loads(header), buffers))

    def _answer(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # the box has closed the channel: nobody waits
            send(self._connection, message)


def main(control: socket.socket, address: str) -> None:
    """Connect, then serve the channels that arrive until the box ends; does not return."""
    try:
        cluster = Cluster(address)
    except BaseException as error:
        send(control, Message({"error": _why(address, error)}))
        os._exit(1)
    send(control, Message({}))
    while True:
        _, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not fds:
            os._exit(0)  # the cluster ends the actors of a driver that is gone
        channel = Channel(cluster, socket.socket(fileno=fds[0]))
        threading.Thread(target=channel.serve, daemon=True).start()


def _why(address: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"Ray is not complete here: {error}; pip install 'edgebox[ray]'"
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        return (
            f"the Ray cluster at {address} has other versions than this box (Python "
            f"{platform.python_version()}): {text[:400]}"
        )
    return f"the Ray cluster at {address} cannot be used: {text[:400] or type(error).__name__}"


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
