"""A recurrent network of LSTM cells, unrolled."""

from __future__ import annotations

from typing import Any

from relaylang.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    ScopeBuilder,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    free_vars,
)
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload
from relaylang.tvm.relay.testing.layers import dense_add_bias


class _Types:
    """The types of a cell's values: `state` is the hidden and the cell state, `cell` the output and the state."""

    def __init__(self, hidden: int, batch: int, dtype: str) -> None:
        self.value = TensorType((batch, hidden), dtype)
        self.weight = TensorType((4 * hidden, hidden), dtype)
        self.bias = TensorType((4 * hidden,), dtype)
        self.gates = TensorType((batch, 4 * hidden), dtype)
        self.state = TupleType([self.value, self.value])
        self.cell = TupleType([self.value, self.state])


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Function:
    """A cell: a function of the input, both states, and weights and biases for the input and the hidden state."""
    t = _Types(num_hidden, batch_size, dtype)
    scope = ScopeBuilder()
    inputs, states = Var("inputs", t.value), Var("states", t.state)
    weights = [Var(f"{part}_{kind}", ty) for part in ("i2h", "h2h") for kind, ty in (("weight", t.weight), ("bias", t.bias))]
    sums: list[Expr] = []
    for place, (part, data) in enumerate((("i2h", inputs), ("h2h", TupleGetItem(states, 0)))):
        dense = dense_add_bias(data, weights[2 * place], weights[2 * place + 1], num_hidden * 4, name=f"{name}{part}")
        sums.append(scope.let((part, t.gates), dense))
    gates = scope.let(("gates", t.gates), op.add(*sums))
    parts = scope.let(("slice_gates", TupleType([t.value] * 4)), op.split(gates, indices_or_sections=4, axis=1).astuple())
    activations = {}
    for place, gate in enumerate(("in_gate", "forget_gate", "in_transform", "out_gate")):
        apply = op.tanh if gate == "in_transform" else op.sigmoid
        activations[gate] = scope.let((gate, t.value), apply(TupleGetItem(parts, place)))
    kept = op.multiply(activations["forget_gate"], TupleGetItem(states, 1))
    next_c = scope.let(("next_c", t.value), op.add(kept, op.multiply(activations["in_gate"], activations["in_transform"])))
    next_h = scope.let(("next_h", t.value), op.multiply(activations["out_gate"], op.tanh(next_c)))
    scope.ret(scope.let(("ret", t.cell), Tuple([next_h, Tuple([next_h, next_c])])))
    return Function([inputs, states, *weights], scope.get(), t.cell)


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """The network: so many cells, one after the other, each with an input and weights of its own."""
    t = _Types(num_hidden, batch_size, dtype)
    scope = ScopeBuilder()
    zeros = scope.let(("zeros", t.value), op.zeros((batch_size, num_hidden), dtype))
    states: Expr = scope.let(("init_states", t.state), Tuple([zeros, zeros]))
    out: Expr = zeros
    for i in range(iterations):
        arguments = [Var(f"{part}_{i}_{kind}", ty) for part in ("i2h", "h2h") for kind, ty in (("weight", t.weight), ("bias", t.bias))]
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{i}")
        call = scope.let((f"call_{i}", t.cell), Call(cell, [Var("data", t.value), states, *arguments]))
        out = scope.let((f"out_{i}", t.value), TupleGetItem(call, 0))
        states = scope.let((f"states_{i}", t.state), TupleGetItem(call, 1))
    scope.ret(out)
    body = scope.get()
    return Function(free_vars(body), body, t.value)


def get_workload(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))


__all__ = ["get_net", "get_workload", "lstm_cell"]
