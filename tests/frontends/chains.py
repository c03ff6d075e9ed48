"""Models of many layers, one after the other, as bytes of a file."""

from __future__ import annotations

from collections.abc import Callable


def onnx_chain(size: int) -> bytes:
    """Additions of the input and activations in turn."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Add", [f"t{i}" if i else "x", "x"], [f"t{i + 1}"])
        if i % 2 == 0
        else helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"])
        for i in range(size)
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 10])
    made = helper.make_tensor_value_info(f"t{size}", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "chain", [given], [made])
    model: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return model


#: Makers of chains by the ending of the format's files.
CHAINS: dict[str, Callable[[int], bytes]] = {".onnx": onnx_chain}
