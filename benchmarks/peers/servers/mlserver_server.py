"""MLServer, in one process. Tensors come and go as JSON: it has no binary form over HTTP."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from mlserver import MLModel
from mlserver.cli.main import root
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse

from benchmarks.peers.servers.session import load


class Detector(MLModel):
    """Takes a batch of pictures."""

    async def load(self) -> bool:
        """Load the model."""
        self.session = load()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer one request."""
        images = NumpyCodec.decode_input(payload.inputs[0]).astype(np.uint8)
        outputs = self.session.run(None, {"images": images})
        named = zip(("boxes", "scores", "labels"), outputs, strict=True)
        return InferenceResponse(
            model_name=self.name,
            outputs=[NumpyCodec.encode_output(name, np.asarray(each)) for name, each in named],
        )


if __name__ == "__main__":
    port = int(sys.argv[4])
    with tempfile.TemporaryDirectory() as folder:
        ports = {"http_port": port, "grpc_port": port + 1, "metrics_port": port + 2}
        settings = {"host": "127.0.0.1", **ports, "parallel_workers": 0, "debug": False}
        Path(folder, "settings.json").write_text(json.dumps(settings))
        model = {"name": "street", "implementation": f"{__spec__.name}.Detector"}
        Path(folder, "model-settings.json").write_text(json.dumps(model))
        root(["start", folder])
