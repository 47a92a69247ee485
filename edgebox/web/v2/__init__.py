"""The Open Inference Protocol, version 2, of Triton and KServe."""
