"""Executors that run elsewhere, over the Open Inference Protocol."""
