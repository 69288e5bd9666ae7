"""How answers of exported operators are compared with torch's."""

import numpy as np
import onnxruntime

from transduce.types import to_tensor


def session(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def apart(found, O, v, at=None):
    """The largest difference from what O answers, in units of the examples' largest value."""
    expected, u = O(v, at).detach().numpy(), to_tensor(O.examples.u, "u").detach().numpy()
    assert found.shape == expected.shape and found.dtype == np.float32
    return np.abs(found - expected).max() / np.abs(u).max()


def agrees(O, path, v, at=None):
    """ONNX Runtime answers as torch does to one function, and to several."""
    graph = session(path)
    nodes = [
        (node.name, node.type, node.shape[0])
        for node in (*graph.get_inputs(), *graph.get_outputs())
    ]
    assert nodes == [("v", "tensor(float)", "m"), ("u", "tensor(float)", "m")]
    for m in (1, len(v)):
        assert apart(graph.run(["u"], {"v": v[:m].numpy()})[0], O, v[:m], at) < 1e-5
