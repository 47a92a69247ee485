"""BentoML, one worker. Its own command starts it, so the arguments come by the environment."""

import os
import sys
from pathlib import Path

import bentoml
import numpy as np

from benchmarks.peers.servers.session import infer, load


@bentoml.service(workers=1, traffic={"timeout": 60, "max_concurrency": 64})
class Detector:
    """Takes a file of a form."""

    def __init__(self) -> None:
        """Load the model."""
        sys.argv[1:] = os.environ["PEER_ARGUMENTS"].split()
        self.session = load()

    @bentoml.api(route="/predict")
    def predict(self, pixels: Path) -> int:
        """Return the bytes of a picture's outputs, and not these: its arrays are JSON."""
        return len(infer(self.session, np.fromfile(pixels, np.uint8).tobytes()))
