"""Model families, sessions, executors, profiles: the only importer of onnxruntime."""

import os

# ONNX Runtime would otherwise write a device id into the home folder and queue reports to its
# makers. Set before its first import; whoever wants it says so in the environment.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
