"""TFLite's conditionals, loops and variables: the program computes what the runtime computes, call after call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.options import Options
from relaylang.frontends.tflite import import_tflite
from relaylang.ir import IRModule, free_vars
from relaylang.ir.structural import structural_equal
from tests.frontends.tflite.files import Graph, Op, T, const, file
from tests.frontends.tflite.runtime import compare, outputs

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")


def real(*shape: int) -> np.ndarray:
    """Real numbers around 0."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def layer(op: Op, *names: str) -> Graph:
    """A graph of one layer on vectors."""
    return {n: T((3,)) for n in (*names, "r")}, [op], list(names), ["r"]


def test_a_conditional_runs_one_branch() -> None:
    tensors = {"c": T((), "bool"), "x": T((3,)), "z": T((3,)), "y": T((3,))}
    op = Op("IF", ["c", "x", "z"], ["y"], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})
    then, other = (layer(Op(k, ["a", "b"], ["r"], f"{k.title()}Options"), "a", "b") for k in ("ADD", "MUL"))
    data = file(tensors, [op], ["c", "x", "z"], ["y"], then, other)
    x, z = real(3), real(3) * 2
    text = compare(data, [np.array(True), x, z], [np.array(False), x, z]).astext(show_meta_data=False)
    assert "if (" in text


def test_the_results_of_branches_are_of_one_type() -> None:
    tensors = {"c": T((), "bool"), "x": T((3,)), "y": T((3,))}
    op = Op("IF", ["c", "x"], ["y"], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})
    floats: Graph = ({"a": T((3,)), "r": T((3,))}, [Op("ABS", ["a"], ["r"])], ["a"], ["r"])
    ints: Graph = ({"a": T((3,)), "r": T((3,), "int32")}, [Op("CAST", ["a"], ["r"])], ["a"], ["r"])
    with pytest.raises(RelayError, match="its branches have the types"):
        import_tflite(file(tensors, [op], ["c", "x"], ["y"], floats, ints))


def counting(limit: int) -> tuple[Graph, Graph]:
    """Condition and body of a loop: the first variable counts to `limit`, the second becomes its square and a tenth."""
    cond: Graph = (
        {"i": T((), "int32"), "a": T((3,)), "n": const(np.int32(limit)), "r": T((), "bool")},
        [Op("LESS", ["i", "n"], ["r"], "LessOptions")],
        ["i", "a"],
        ["r"],
    )
    body: Graph = (
        {
            "i": T((), "int32"),
            "a": T((3,)),
            "one": const(np.int32(1)),
            "more": const(np.float32(0.1)),
            "j": T((), "int32"),
            "s": T((3,)),
            "r": T((3,)),
        },
        [
            Op("ADD", ["i", "one"], ["j"], "AddOptions"),
            Op("MUL", ["a", "a"], ["s"], "MulOptions"),
            Op("ADD", ["s", "more"], ["r"], "AddOptions"),
        ],
        ["i", "a"],
        ["j", "r"],
    )
    return cond, body


def loop(inputs: tuple[str, ...] = ("i", "x"), outputs: tuple[str, ...] = ("j", "y")) -> Op:
    """A loop whose condition is graph 1, whose body is graph 2."""
    return Op("WHILE", inputs, outputs, "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})


def test_a_loop_is_a_function_that_calls_itself() -> None:
    tensors = {"i": T((), "int32"), "x": T((3,)), "j": T((), "int32"), "y": T((3,))}
    data = file(tensors, [loop()], ["i", "x"], ["j", "y"], *counting(4))
    x = np.array([0.1, 0.5, -0.7], "float32")
    mod = compare(data, [np.int32(0), x], [np.int32(9), x])
    assert "while_loop" in mod.astext(show_meta_data=False)


@pytest.mark.parametrize("turns", [0, 5, 100])
def test_a_loop_of_few_turns_is_written_out(turns: int) -> None:
    tensors = {"i": const(np.int32(0)), "x": T((3,)), "j": T((), "int32"), "y": T((3,))}
    data = file(tensors, [loop()], ["x"], ["j", "y"], *counting(turns))
    mod = compare(data, [np.array([0.1, 0.5, -0.7], "float32")])
    assert ("while_loop" in mod.astext(show_meta_data=False)) == (turns == 100)


def test_a_layer_of_a_loop_is_reported_once() -> None:
    cond, (names, ops, given, results) = counting(3)
    body: Graph = (names, [ops[0], Op("MyOwn", ["a"], ["s"]), ops[2]], given, results)
    tensors = {"i": const(np.int32(0)), "x": T((3,)), "j": T((), "int32"), "y": T((3,))}
    data = file(tensors, [loop()], ["x"], ["j", "y"], cond, body)
    with pytest.raises(RelayError, match="1 layer of 1 operator cannot be converted"):
        import_tflite(data)
    made = import_tflite(data, Options(partial=True))
    assert "1 x MyOwn" in str(made.notes[0]) and "extern_MyOwn" in made.module.astext(show_meta_data=False)


def test_a_graph_that_is_called_stands_in_place() -> None:
    tensors = {"x": T((3,)), "y": T((3,))}
    op = Op("CALL", ["x"], ["y"], "CallOptions", {"Subgraph": 1})
    data = file(tensors, [op], ["x"], ["y"], layer(Op("ABS", ["a"], ["r"]), "a"))
    text = import_tflite(data).module.astext(show_meta_data=False)
    assert "abs(%x)" in text


@pytest.mark.parametrize("option", [1, 0, 7])
def test_graphs_that_call_themselves_or_nothing_are_refused(option: int) -> None:
    tensors = {"x": T((3,)), "y": T((3,))}
    call = Op("CALL", ["x"], ["y"], "CallOptions", {"Subgraph": option})
    inner = Op("CALL", ["a"], ["r"], "CallOptions", {"Subgraph": 1})
    again = Op("CALL", ["a"], ["s"], "CallOptions", {"Subgraph": 1})
    twice: Graph = ({"a": T((3,)), "r": T((3,)), "s": T((3,))}, [inner, again], ["a"], ["r"])
    with pytest.raises(RelayError) as raised:
        import_tflite(file(tensors, [call], ["x"], ["y"], twice))
    assert raised.value.diagnostics[0].code == ("R0016" if option == 1 else "R0801")


def handle(out: str = "v", name: str = "total") -> Op:
    """A handle to a variable."""
    return Op("VAR_HANDLE", [], [out], "VarHandleOptions", {"Container": "", "SharedName": name})


def test_a_variable_is_a_parameter_and_a_result() -> None:
    tensors = {"x": T((3,)), "v": T((), "resource"), "old": T((3,)), "new": T((3,))}
    once = Op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    ops = [
        once,
        handle(),
        Op("READ_VARIABLE", ["v"], ["old"]),
        Op("ADD", ["old", "x"], ["new"], "AddOptions"),
        Op("ASSIGN_VARIABLE", ["v", "new"], []),
    ]
    start: Graph = (
        {"v": T((), "resource"), "c": const(real(3) + 5)},
        [handle(), Op("ASSIGN_VARIABLE", ["v", "c"], [])],
        [],
        [],
    )
    mod = compare(file(tensors, ops, ["x"], ["new"], start), [real(3)], [real(3) * 2], [real(3)])
    assert [p.name_hint for p in mod["main"].params] == ["x", "total"]


def test_a_variable_that_is_only_read_is_a_constant() -> None:
    tensors = {"x": T((3,)), "v": T((), "resource"), "old": T((3,)), "new": T((3,))}
    once = Op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    ops = [once, handle(), Op("READ_VARIABLE", ["v"], ["old"]), Op("ADD", ["old", "x"], ["new"], "AddOptions")]
    start: Graph = (
        {"v": T((), "resource"), "c": const(real(3) + 5)},
        [handle(), Op("ASSIGN_VARIABLE", ["v", "c"], [])],
        [],
        [],
    )
    mod = compare(file(tensors, ops, ["x"], ["new"], start), [real(3)], [real(3) * 2])
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    with pytest.raises(RelayError, match="nothing assigns the variable total"):
        import_tflite(file(tensors, ops[1:], ["x"], ["new"]))


def start_of(value: np.ndarray) -> Graph:
    """The graph that gives the variable its first value."""
    return ({"v": T((), "resource"), "c": const(value)}, [handle(), Op("ASSIGN_VARIABLE", ["v", "c"], [])], [], [])


def test_branches_and_loops_change_variables() -> None:
    grown: Graph = (
        {"v": T((), "resource"), "a": T((3,)), "old": T((3,)), "new": T((3,)), "r": T((3,))},
        [
            Op("READ_VARIABLE", ["v"], ["old"]),
            Op("ADD", ["old", "a"], ["new"], "AddOptions"),
            Op("ASSIGN_VARIABLE", ["v", "new"], []),
            Op("ABS", ["new"], ["r"]),
        ],
        ["v", "a"],
        ["r"],
    )
    kept: Graph = ({"v": T((), "resource"), "a": T((3,)), "r": T((3,))}, [Op("NEG", ["a"], ["r"])], ["v", "a"], ["r"])
    tensors = {"c": T((), "bool"), "x": T((3,)), "v": T((), "resource"), "y": T((3,)), "z": T((3,))}
    ops = [
        Op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 3}),
        handle(),
        Op("IF", ["c", "v", "x"], ["y"], "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}),
        Op("READ_VARIABLE", ["v"], ["z"]),
    ]
    data = file(tensors, ops, ["c", "x"], ["y", "z"], grown, kept, start_of(real(3)))
    x = real(3)
    compare(data, [np.array(True), x], [np.array(False), x], [np.array(True), x * 3])


def test_loops_change_variables() -> None:
    handles = {"v": T((), "resource")}
    cond: Graph = (
        {"i": T((), "int32"), **handles, "n": const(np.int32(3)), "r": T((), "bool")},
        [Op("LESS", ["i", "n"], ["r"], "LessOptions")],
        ["i", "v"],
        ["r"],
    )
    body: Graph = (
        {"i": T((), "int32"), **handles, "one": const(np.int32(1)), "j": T((), "int32"), "old": T((3,)), "new": T((3,))},
        [
            Op("ADD", ["i", "one"], ["j"], "AddOptions"),
            Op("READ_VARIABLE", ["v"], ["old"]),
            Op("ADD", ["old", "old"], ["new"], "AddOptions"),
            Op("ASSIGN_VARIABLE", ["v", "new"], []),
        ],
        ["i", "v"],
        ["j", "v"],
    )
    tensors = {"i": T((), "int32"), **handles, "w": T((), "resource"), "j": T((), "int32"), "z": T((3,))}
    ops = [
        Op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 3}),
        handle(),
        loop(("i", "v"), ("j", "w")),
        Op("READ_VARIABLE", ["w"], ["z"]),
    ]
    data = file(tensors, ops, ["i"], ["j", "z"], cond, body, start_of(real(3)))
    compare(data, [np.int32(0)], [np.int32(2)], [np.int32(5)])


def computed(value: np.ndarray) -> Graph:
    """The graph that gives the variable a first value that layers compute."""
    tensors = {"v": T((), "resource"), "c": const(value), "d": const(value * 2), "s": T(value.shape)}
    return tensors, [handle(), Op("ADD", ["c", "d"], ["s"], "AddOptions"), Op("ASSIGN_VARIABLE", ["v", "s"], [])], [], []


@pytest.mark.parametrize("start", [start_of, computed])
@pytest.mark.parametrize("executor", ["debug", "graph", "vm", "aot"])
def test_first_values_need_no_parameters(start: Callable[[np.ndarray], Graph], executor: str) -> None:
    first, x = np.arange(3, dtype="float32") + 1, real(3)
    tensors = {"x": T((3,)), "v": T((), "resource"), "old": T((3,)), "k": const(real(3)), "sum": T((3,)), "new": T((3,))}
    ops = [
        Op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1}),
        handle(),
        Op("READ_VARIABLE", ["v"], ["old"]),
        Op("ADD", ["old", "x"], ["sum"], "AddOptions"),
        Op("MUL", ["sum", "k"], ["new"], "MulOptions"),
        Op("ASSIGN_VARIABLE", ["v", "new"], []),
    ]
    data = file(tensors, ops, ["x"], ["new"], start(first))
    (wanted,), (again,) = outputs(data, [[x], [x]])
    made = import_tflite(data, Options(freeze=False))
    mod = made.module
    assert list(made.params) == ["k"] and free_vars(mod["initial_state"]) == []
    assert structural_equal(relay.parse(mod.astext()), mod)
    beginning = IRModule.from_expr(mod["initial_state"])
    kept = tuple_of(relay.create_executor(executor, beginning).evaluate()())
    run = relay.create_executor(executor, mod).evaluate()
    for expected in (wanted, again):
        found, *kept = tuple_of(run(x, *kept, **made.params))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def tuple_of(results: Any) -> list[np.ndarray]:
    """The results of a program, one or several."""
    return [np.asarray(r) for r in (results if isinstance(results, (tuple, list)) else [results])]


def test_first_values_of_recurrent_layers_need_no_parameters() -> None:
    tensors = {"x": T((1, 3)), "w": const(real(2, 3)), "r": const(real(2, 2)), "b": const(real(2))}
    tensors |= {"h": T((1, 2), variable=True), "y": T((1, 2))}
    data = file(tensors, [Op("RNN", ["x", "w", "r", "b", "h"], ["y"], "RNNOptions")], ["x"], ["y"])
    made = import_tflite(data, Options(freeze=False))
    assert all(free_vars(f) == [] for f in made.module.functions.values())
