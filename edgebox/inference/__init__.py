"""Model families, sessions, executors, profiles: the only importer of onnxruntime."""
