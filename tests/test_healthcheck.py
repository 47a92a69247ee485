"""The images' health check: a box with TLS or without lives if it says so."""

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from edgebox import healthcheck
from edgebox.config.config_file import ServerParameters
from edgebox.web.tls import tls_context
from tests.conftest import PATIENCE_S


@contextlib.contextmanager
def answering(status: int, tls_folder: Path | None) -> Iterator[int]:
    """Answer every question with a status; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_request(self, code: object = "", size: object = "") -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls_folder is not None:
            made = tls_context(ServerParameters(tls="self-signed"), tls_folder)
            assert made is not None
            server.socket = made[0].wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(("status", "lives"), [(200, True), (503, False)])
def test_a_box_lives_that_says_so(status: int, lives: bool, tls: bool, tmp_path: Path) -> None:
    with answering(status, tmp_path if tls else None) as port:
        assert healthcheck.lives(port, PATIENCE_S) is lives


def test_no_box_does_not_live() -> None:
    with answering(200, None) as port:
        pass
    assert not healthcheck.lives(port, PATIENCE_S)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_port_that_is_silent_or_never_ends_does_not_live(said: bytes) -> None:
    def drip(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.sendall(said)
                while said:  # until the other side is gone
                    connection.sendall(b"x")
                    ended.wait(0.01)

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        program = f"from edgebox import healthcheck; healthcheck.main({port}, 0.3)"
        found = subprocess.run(
            [sys.executable, "-S", "-c", program],
            env={"PYTHONPATH": str(Path(healthcheck.__file__).parents[1])},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (found.returncode, found.stderr) == (1, f"the box does not answer on port {port}\n")


def test_it_needs_the_standard_library_alone() -> None:
    """It runs every few seconds for as long as the container does."""
    root = Path(healthcheck.__file__).parents[1]
    program = [sys.executable, "-S", "-c", "import edgebox.healthcheck"]
    subprocess.run(program, env={"PYTHONPATH": str(root)}, check=True)
