"""The images' health check: a box with TLS or without lives if it says so."""

import contextlib
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


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for an answer however busy the machine is."""
    monkeypatch.setattr(healthcheck, "_TIMEOUT_S", PATIENCE_S)


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
        assert healthcheck.lives(port) is lives


def test_no_box_does_not_live() -> None:
    with answering(200, None) as port:
        pass
    assert not healthcheck.lives(port)


def test_it_needs_the_standard_library_alone() -> None:
    """It runs every few seconds for as long as the container does."""
    root = Path(healthcheck.__file__).parents[1]
    program = [sys.executable, "-S", "-c", "import edgebox.healthcheck"]
    subprocess.run(program, env={"PYTHONPATH": str(root)}, check=True)
