"""The Open Inference Protocol, version 2: what clients of Triton and KServe speak."""
