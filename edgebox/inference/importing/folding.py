"""Decides when scale and order of colours can move into the first convolution's weights.

conv(x * s, W) = conv(x, s * W), and colours in another order are weights in that order; borders
of zeros stay zeros. So a model that begins with a convolution needs only a cast in front of it.
A mean cannot move, because it would be missing at the borders. Rounding differs in the last bit;
the comparison with the original covers that.
"""

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from edgebox.inference.importing.files import graphs_of


def fold(model: ModelProto, fed: str, gain: NDArray[np.float64], *, reverse: bool) -> bool:
    """Change the weights so that the model takes unscaled RGB; return whether that was possible.

    Args:
        model: changed in place.
        fed: the input (b, 3, h, w).
        gain: (3,) factors, in the order of colours that the model wants.
        reverse: whether it wants BGR.
    """
    users = [node for graph in graphs_of(model) for node in graph.node if fed in node.input]
    if len(users) != 1 or users[0].op_type != "Conv" or users[0].domain not in ("", "ai.onnx"):
        return False
    weights = _own_weights(model, users[0])
    if weights is None:
        return False
    # Weights are (out, colours, h, w).
    scaled = numpy_helper.to_array(weights).astype(np.float64) * gain.reshape(1, 3, 1, 1)
    ordered = scaled[:, ::-1] if reverse else scaled
    weights.CopyFrom(numpy_helper.from_array(ordered.astype(np.float32), weights.name))
    return True


def _own_weights(model: ModelProto, conv: NodeProto) -> TensorProto | None:
    """Return a convolution's constant weights over three colours, if nothing else reads them."""
    groups = [helper.get_attribute_value(a) for a in conv.attribute if a.name == "group"]
    if groups not in ([], [1]) or conv not in list(model.graph.node):
        return None
    name = conv.input[1]
    readers = [node for graph in graphs_of(model) for node in graph.node if name in node.input]
    if len(readers) != 1:
        return None
    for tensor in model.graph.initializer:
        if tensor.name == name:
            fits = tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 4
            return tensor if fits and tensor.dims[1] == 3 else None
    return None
