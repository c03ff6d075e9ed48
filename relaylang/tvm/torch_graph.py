"""What scripts ask of a TorchScript graph (`torch._C.Graph`) below `relay.frontend.from_pytorch`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Var, var


def get_all_op_names(graph: Any) -> set[str]:
    """The operators of a graph, "aten::relu", also those in branches and loops."""
    names: set[str] = set()
    stack = [graph]
    while stack:
        for node in stack.pop().nodes():
            names.add(node.kind())
            stack.extend(node.blocks())
    return names


def _get_input_names(node_or_graph: Any) -> list[str]:
    """The names of the values that a node or a graph takes."""
    return [value.debugName() for value in node_or_graph.inputs()]


def _get_operator_nodes(
    nodes: Iterable[Any],
    source_map: Any = None,
    op_type_dict: Any = None,
    use_parser_friendly_name: bool = False,
    preserve_pytorch_scopes: bool = False,
) -> list[tuple[str, Any]]:
    """The nodes that compute something, each with the names of its results, joined by "_". Attributes are left out."""
    operators = []
    for node in nodes:
        name = "_".join(value.debugName() for value in node.outputs())
        if name and node.kind() != "prim::GetAttr":
            operators.append((name, node))
    return operators


def _get_relay_input_vars(
    graph: Any, input_infos: Sequence[tuple[str, Any]], prelude: Any = None, is_module: bool = True, default_dtype: str = "float32"
) -> dict[str, Var]:
    """The variables of a graph's tensors by the names of its inputs.

    `input_infos` has a pair for each: (name, shape) or (name, (shape, dtype)). Raises `RelayError` (R0804) for another number.
    """
    names = _get_input_names(graph)[1 if is_module else 0 :]
    if len(names) != len(input_infos):
        raise RelayError(error("R0804", f"input_infos has {len(input_infos)} inputs, and the graph takes {len(names)}"))
    variables = {}
    for own, (name, info) in zip(names, input_infos):
        pair = len(info) == 2 and isinstance(info[1], str)
        shape, dtype = info if pair else (info, default_dtype)
        variables[own] = var(name, shape=tuple(shape), dtype=dtype)
    return variables


def _run_jit_passes(graph: Any, enable_lower_all_tuples: bool = True) -> None:
    """Inline the calls of a graph, in place, as importers want it. Tuples are taken apart, too, unless that is disabled."""
    import torch

    torch._C._jit_pass_inline(graph)
    if enable_lower_all_tuples:
        torch._C._jit_pass_lower_all_tuples(graph)


def is_version_greater_than(ver: str) -> bool:
    """Whether the installed PyTorch is newer than a version such as "1.5.0"."""
    import torch

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split("+")[0].split(".")[:3] if part.isdecimal()]

    return numbers(torch.__version__) > numbers(ver)


def getattr_attr_name(node: Any) -> str:
    """The attribute that a node `prim::GetAttr` reads."""
    (name,) = node.attributeNames()
    return str(node.s(name))


__all__ = ["get_all_op_names", "getattr_attr_name", "is_version_greater_than"]
