"""LitServe, one picture at a time."""

import sys

import litserve
from fastapi import Request, Response

from benchmarks.peers.servers.session import infer, load


class Detector(litserve.LitAPI):
    """Takes a file of a form, since it takes no bodies that are neither forms nor JSON."""

    def setup(self, device: str) -> None:
        """Load the model."""
        self.session = load()

    def decode_request(self, request: Request) -> bytes:
        """Return the pixels."""
        pixels: bytes = request["pixels"].file.read()
        return pixels

    def predict(self, pixels: bytes) -> bytes:
        """Return the outputs."""
        return infer(self.session, pixels)

    def encode_response(self, output: bytes) -> Response:
        """Return them as they are."""
        return Response(content=output, media_type="application/octet-stream")


if __name__ == "__main__":
    litserve.LitServer(Detector(), accelerator="cpu", timeout=False).run(
        host="127.0.0.1", port=int(sys.argv[4]), generate_client_file=False, log_level="error"
    )
