"""What the process of a Ray cluster answers without asking the cluster."""

import socket
import threading
from types import SimpleNamespace
from typing import Any

from edgebox.inference.remote.ray_messages import Message, receive, send
from edgebox.inference.remote.ray_process import Channel


def test_a_family_for_a_worker_that_has_ended_is_one_clear_error() -> None:
    cluster: Any = SimpleNamespace(actors={})
    box, process = socket.socketpair()
    serving = threading.Thread(target=Channel(cluster, process).serve)
    serving.start()
    send(box, Message({"do": "add", "worker": "gone", "families": []}))
    answer = receive(box)
    box.close()
    serving.join()
    assert answer is not None
    assert answer.header == {"error": "its worker has ended"}
