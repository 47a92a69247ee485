"""edgebox beside bare ONNX Runtime and other inference servers."""
