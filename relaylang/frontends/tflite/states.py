"""Variables: values that a network keeps from one call to the next.

A resource variable has a name, and handles lead to it. A variable tensor is the state of a recurrent layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.frontends.tflite.reader import Model, Operator, Tensor

#: The options of operators that run other graphs, and the place of the first operand that these graphs get.
_CALLS = {
    "IF": (("then_subgraph_index", "else_subgraph_index"), 1),
    "WHILE": (("cond_subgraph_index", "body_subgraph_index"), 0),
    "STABLEHLO_WHILE": (("cond_subgraph_index", "body_subgraph_index"), 0),
    "CALL": (("subgraph",), 0),
    "STABLEHLO_COMPOSITE": (("decomposition_subgraph_index",), 0),
}


@dataclass(frozen=True)
class Variable:
    """A variable; a handle to it is the variable itself. `place` is the graph and the index of a variable tensor."""

    name: str
    container: str = ""
    place: tuple[int, int] | None = None


def assigned(model: Model, graph: int, inputs: Sequence[Any]) -> dict[Variable, Tensor]:
    """The variables that a graph and the graphs it runs assign, each with a tensor of its type.

    `inputs` are the graph's operands: a `Variable` for a handle, anything else for others. `CALL_ONCE` does not count.
    """
    variables: dict[Variable, Tensor] = {}
    start = (graph, _handles(inputs))
    waiting, seen = [start], {start}
    while waiting:
        index, handles_in = waiting.pop()
        if not 0 <= index < len(model.subgraphs):
            continue
        subgraph = model.subgraphs[index]
        handles = {i: h for i, h in zip(subgraph.inputs, handles_in) if h is not None}
        for operator in subgraph.operators:
            _note(variables, index, subgraph.tensors, operator, handles)
            for call in _calls(operator, handles):
                if call not in seen:
                    seen.add(call)
                    waiting.append(call)
    return variables


def _handles(values: Iterable[Any]) -> tuple[Variable | None, ...]:
    return tuple([v if isinstance(v, Variable) else None for v in values])


def _note(
    variables: dict[Variable, Tensor], graph: int, tensors: Sequence[Tensor], operator: Operator, handles: dict[int, Variable]
) -> None:
    """Add what one layer assigns to `variables`, and the handles that it makes to `handles`."""
    if operator.name == "VAR_HANDLE" and operator.outputs:
        handles[operator.outputs[0]] = handle_of(operator)
    elif operator.name == "ASSIGN_VARIABLE" and len(operator.inputs) == 2 and operator.inputs[0] in handles:
        variables.setdefault(handles[operator.inputs[0]], tensors[operator.inputs[1]])
    elif operator.name == "WHILE":
        handles.update({o: handles[i] for i, o in zip(operator.inputs, operator.outputs) if i in handles})
    for i in operator.inputs:
        if i >= 0 and tensors[i].is_variable and tensors[i].data is None:
            variables.setdefault(Variable(tensors[i].name, place=(graph, i)), tensors[i])


def _calls(operator: Operator, handles: Mapping[int, Variable]) -> list[tuple[int, tuple[Variable | None, ...]]]:
    names, first = _CALLS.get(operator.name, ((), 0))
    arguments = _handles(handles.get(i) for i in operator.inputs[first:])
    return [(operator.options[n], arguments) for n in names if n in operator.options]


def handle_of(operator: Operator) -> Variable:
    """The variable of a `VAR_HANDLE` layer."""
    return Variable(operator.options.get("shared_name") or "", operator.options.get("container") or "")


__all__ = ["Variable", "assigned", "handle_of"]
