"""Detections, letterbox, output decoding, accuracy metrics. Numpy only."""
