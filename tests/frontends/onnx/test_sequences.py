"""Sequences and optionals whose length or presence is known only when the program runs, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.diagnostics import RelayError
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.onnx.backend import prepare
from relaylang.interpreter import Evaluator
from relaylang.stdlib.library import read
from relaylang.typing import check
from tests.frontends.onnx.models import node
from tests.frontends.onnx.runtime import theirs

#: A shape, "?" for an open extent; None for an unknown one.
Shape = Any


def tensor(dtype: str, shape: Shape) -> Any:
    from onnx import helper

    extents = None if shape is None else [f"d{i}" if d == "?" else d for i, d in enumerate(shape)]
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), extents)


def sequence(shape: Shape, dtype: str = "float32") -> Any:
    from onnx import helper

    return helper.make_sequence_type_proto(tensor(dtype, shape))


def option(inner: Any) -> Any:
    from onnx import helper

    return helper.make_optional_type_proto(inner)


def graph(nodes: Any, inputs: dict[str, Any], outputs: dict[str, Any], name: str = "graph") -> Any:
    from onnx import helper

    return helper.make_graph(
        list(nodes),
        name,
        [helper.make_value_info(n, t) for n, t in inputs.items()],
        [helper.make_value_info(n, t) for n, t in outputs.items()],
    )


def made(*args: Any) -> bytes:
    from onnx import helper

    return helper.make_model(graph(*args), opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def constant(name: str, value: Any) -> Any:
    from onnx import numpy_helper

    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def alike(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted)
        for f, w in zip(found, wanted):
            alike(f, w)
    elif wanted is None:
        assert found is None
    else:
        assert found.dtype == wanted.dtype and found.shape == wanted.shape and np.allclose(found, wanted, 1e-5, 1e-6)


def compare(data: bytes, given: dict[str, Any]) -> str:
    """Both runtimes give the same. The text reads back as a program with the same type; it is the result."""
    ready = prepare(data)
    assert not ready.refused, "the import needs no values"
    for f, w in zip(ready.run(given), theirs(data, given), strict=True):
        alike(f, w)
    mod = import_onnx(data).module
    text = mod.astext(show_meta_data=True)
    again = read(text).module
    check(again)
    assert str(again["main"].checked_type) == str(mod["main"].checked_type)
    Evaluator(again)
    return text


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


XS = [floats(2, 3), floats(4, 3), floats(1, 3)]
OPEN = sequence(("?", 3))


@pytest.mark.parametrize("place", [0, 2, -1, -3])
@pytest.mark.parametrize("computed", [False, True])
def test_elements_by_their_place(place: int, computed: bool) -> None:
    layers = [] if computed else [constant("i", np.int64(place))]
    inputs = {"xs": OPEN, **({"i": tensor("int64", ())} if computed else {})}
    given = {"xs": XS, **({"i": np.array(place, "int64")} if computed else {})}
    layers += [
        node("SequenceAt", ["xs", "i"], ["x"]),
        node("SequenceErase", ["xs", "i"], ["less"]),
        node("SequenceInsert", ["xs", "x", "i"], ["more"]),
        node("SequenceLength", ["more"], ["n"]),
    ]
    outputs = {"x": tensor("float32", None), "less": OPEN, "more": OPEN, "n": tensor("int64", ())}
    text = compare(made(layers, inputs, outputs), given)
    assert "List[Tensor[(?, 3), float32]]" in text and "@nth(" in text


def test_the_ends_of_a_list() -> None:
    layers = [node("SequenceErase", ["xs"], ["less"]), node("SequenceInsert", ["less", "x"], ["more"])]
    data = made(layers, {"xs": sequence((2, 3)), "x": tensor("float32", (5, 3))}, {"less": OPEN, "more": OPEN})
    compare(data, {"xs": [floats(2, 3), -floats(2, 3)], "x": floats(5, 3)})


def test_a_list_may_be_empty() -> None:
    layers = [node("SequenceInsert", ["xs", "x"], ["more"]), node("SequenceLength", ["xs"], ["n"])]
    data = made(layers, {"xs": OPEN, "x": tensor("float32", (5, 3))}, {"more": OPEN, "n": tensor("int64", ())})
    compare(data, {"xs": [], "x": floats(5, 3)})


@pytest.mark.parametrize("new", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_behind_each_other(new: int, axis: int) -> None:
    layer = node("ConcatFromSequence", ["xs"], axis=axis, new_axis=new)
    data = made([layer], {"xs": sequence((2, 3))}, {"y": tensor("float32", None)})
    compare(data, {"xs": [floats(2, 3), -floats(2, 3), floats(2, 3) * 2]})


def test_elements_of_open_extents_behind_each_other() -> None:
    data = made([node("ConcatFromSequence", ["xs"], axis=0)], {"xs": OPEN}, {"y": tensor("float32", None)})
    text = compare(data, {"xs": XS})
    assert "@foldl(" in text


@pytest.mark.parametrize("keep", [0, 1])
def test_single_slices(keep: int) -> None:
    layers = [node("SplitToSequence", ["x"], ["xs"], axis=1, keepdims=keep)]
    data = made(layers, {"x": tensor("float32", (2, "?"))}, {"xs": sequence(None)})
    compare(data, {"x": floats(2, 5)})


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("computed", [False, True])
def test_parts_of_one_length(size: int, computed: bool) -> None:
    layers = [*([] if computed else [constant("n", np.int64(size))]), node("SplitToSequence", ["x", "n"], ["xs"], axis=0)]
    inputs = {"x": tensor("float32", (6, 2) if computed else ("?", 2)), **({"n": tensor("int64", ())} if computed else {})}
    given = {"x": floats(6, 2), **({"n": np.array(size, "int64")} if computed else {})}
    compare(made(layers, inputs, {"xs": sequence(("?", 2))}), given)


@pytest.mark.parametrize("count", [3, "?"])
def test_parts_of_computed_lengths(count: Any) -> None:
    layers = [node("SplitToSequence", ["x", "n"], ["xs"], axis=-1)]
    data = made(layers, {"x": tensor("float32", (2, "?")), "n": tensor("int64", (count,))}, {"xs": sequence((2, "?"))})
    text = compare(data, {"x": floats(2, 6), "n": np.array([1, 2, 3])})
    assert ("Cons(" in text) == (count == "?")


def test_a_function_over_lists() -> None:
    body = graph(
        [node("Add", ["a", "b"], ["s"]), node("Mul", ["s", "c"], ["p"]), node("Neg", ["a"], ["m"])],
        {n: tensor("float32", ("?", 3)) for n in "abc"},
        {n: tensor("float32", None) for n in "pm"},
    )
    layers = [node("SequenceMap", ["xs", "zs", "k"], ["ps", "ms"], body=body)]
    data = made(layers, {"xs": OPEN, "zs": OPEN, "k": tensor("float32", (1, 3))}, {"ps": OPEN, "ms": OPEN})
    text = compare(data, {"xs": XS, "zs": [x + 1 for x in XS], "k": floats(1, 3)})
    assert "@zip(" in text and "@map(" in text


def grows(body: list[Any], inner: Any, trips: Any = None, start: str = "empty", stated: Any = None) -> bytes:
    """A loop whose variable is a sequence that starts with `start`, and that the body makes longer."""
    inside = graph(
        [*body, constant("on", True)],
        {"i": tensor("int64", ()), "go": tensor("bool", ()), "s": stated or sequence(None)},
        {"on": tensor("bool", ()), "t": sequence(None)},
    )
    layers = [node("SequenceEmpty", [], ["empty"]), node("SequenceConstruct", ["x"], ["one"]), constant("true", True)]
    layers.append(node("Loop", ["n", "true", start], ["ys"], body=inside))
    layers.append(node("ConcatFromSequence", ["ys"], axis=0))
    return made(layers, {"x": tensor("float32", (2, 3)), "n": tensor("int64", ())}, {"ys": inner, "y": tensor("float32", None)})


@pytest.mark.parametrize("start", ["empty", "one"])
@pytest.mark.parametrize("stated", [None, OPEN])
def test_loops_that_make_sequences_longer(start: str, stated: Any) -> None:
    body = [node("Cast", ["i"], ["f"], to=1), node("Add", ["x", "f"], ["a"]), node("SequenceInsert", ["s", "a"], ["t"])]
    text = compare(grows(body, OPEN, start=start, stated=stated), {"x": floats(2, 3), "n": np.array(11, "int64")})
    assert "%loop" in text


def test_loops_whose_elements_differ() -> None:
    body = [
        constant("flat", np.array([1])),
        node("Reshape", ["i", "flat"], ["j"]),
        node("Add", ["j", "flat"], ["k"]),
        node("Concat", ["k", "flat"], ["by"], axis=0),
        node("Tile", ["x", "by"], ["a"]),
        node("SequenceInsert", ["s", "a"], ["t"]),
    ]
    for start in ("empty", "one"):
        compare(grows(body, OPEN, start=start), {"x": floats(2, 3), "n": np.array(4, "int64")})


def test_loops_that_read_their_sequence() -> None:
    body = [
        constant("last", np.int64(-1)),
        node("SequenceAt", ["s", "last"], ["b"]),
        node("Add", ["b", "x"], ["a"]),
        node("SequenceInsert", ["s", "a"], ["t"]),
    ]
    compare(grows(body, OPEN, start="one"), {"x": floats(2, 3), "n": np.array(5, "int64")})


def branches(
    then: list[Any], other: list[Any], result: Any, inputs: dict[str, Any], rest: list[Any], outputs: dict[str, Any]
) -> bytes:
    """A conditional whose branches give `r`."""
    sides = {f"{name}_branch": graph(nodes, {}, {nodes[-1].output[0]: result}) for name, nodes in (("then", then), ("else", other))}
    return made([node("If", ["c"], ["r"], **sides), *rest], {"c": tensor("bool", ()), **inputs}, outputs)


@pytest.mark.parametrize("cond", [False, True])
def test_branches_with_sequences_of_different_lengths(cond: bool) -> None:
    then = [node("SequenceConstruct", ["x"], ["p"])]
    other = [node("SequenceConstruct", ["x", "z"], ["q"])]
    rest = [node("SequenceLength", ["r"], ["n"]), node("ConcatFromSequence", ["r"], axis=0)]
    data = branches(
        then,
        other,
        OPEN,
        {"x": tensor("float32", (2, 3)), "z": tensor("float32", (4, 3))},
        rest,
        {"r": OPEN, "n": tensor("int64", ()), "y": tensor("float32", None)},
    )
    compare(data, {"c": np.array(cond), "x": floats(2, 3), "z": floats(4, 3)})


@pytest.mark.parametrize("cond", [False, True])
def test_branches_with_optionals(cond: bool) -> None:
    kind = option(tensor("float32", (2, 3)))
    then = [node("Optional", ["x"], ["p"])]
    other = [node("Optional", [], ["q"], type=tensor("float32", (2, 3)))]
    data = branches(
        then, other, kind, {"x": tensor("float32", (2, 3))}, [node("OptionalHasElement", ["r"], ["h"])], {"h": tensor("bool", ())}
    )
    assert "Option[Tensor[(2, 3), float32]]" in compare(data, {"c": np.array(cond), "x": floats(2, 3)})


@pytest.mark.parametrize("given", [None, floats(2, 3)])
def test_optional_inputs(given: Any) -> None:
    kind = option(tensor("float32", (2, 3)))
    data = made(
        [node("OptionalHasElement", ["o"], ["h"]), node("Identity", ["o"], ["p"])], {"o": kind}, {"h": tensor("bool", ()), "p": kind}
    )
    has, same = prepare(data).run({"o": given})
    assert bool(has) == (given is not None)
    alike(same, given)
    assert "Option[Tensor[(2, 3), float32]]" in str(import_onnx(data).module)


def test_optional_sequences() -> None:
    kind = option(sequence(("?", 3)))
    layers = [node("OptionalGetElement", ["o"], ["xs"]), node("SequenceLength", ["xs"], ["n"])]
    data = made(layers, {"o": kind}, {"xs": OPEN, "n": tensor("int64", ())})
    compare(data, {"o": XS})
    with pytest.raises(RelayError):
        prepare(data).run({"o": None})


def test_an_optional_result_without_a_value() -> None:
    kind = option(tensor("float32", (2,)))
    data = made([node("Optional", [], ["p"], type=tensor("float32", (2,)))], {}, {"p": kind})
    assert prepare(data).run({}) == (None,)


def test_elements_that_are_not_as_stated() -> None:
    """The sequence is then a constant of the program."""
    data = made([node("SequenceAt", ["xs", "i"])], {"xs": OPEN, "i": tensor("int64", ())}, {"y": tensor("float32", None)})
    ready = prepare(data)
    alike(ready.run({"xs": [floats(5)], "i": np.int64(0)})[0], floats(5))
    alike(ready.run({"xs": XS, "i": np.int64(1)})[0], XS[1])


@pytest.mark.parametrize("place", [3, -4])
def test_a_place_behind_the_end(place: int) -> None:
    data = made([node("SequenceAt", ["xs", "i"])], {"xs": OPEN, "i": tensor("int64", ())}, {"y": tensor("float32", None)})
    with pytest.raises(RelayError):
        prepare(data).run({"xs": XS, "i": np.int64(place)})


def test_wrong_sequences_are_refused() -> None:
    unknown = made([node("SequenceLength", ["xs"])], {"xs": sequence(None)}, {"y": tensor("int64", ())})
    with pytest.raises(RelayError, match="--shape xs="):
        import_onnx(unknown)
    apart = made([node("SequenceInsert", ["xs", "x"])], {"xs": OPEN, "x": tensor("float32", (3,))}, {"y": sequence(None)})
    with pytest.raises(RelayError, match="it holds values of the types"):
        import_onnx(apart)
    plain = made([node("SequenceLength", ["x"])], {"x": tensor("float32", (3,))}, {"y": tensor("int64", ())})
    with pytest.raises(RelayError, match="not a sequence"):
        import_onnx(plain)


def test_an_optional_result_of_no_type_is_refused() -> None:
    data = made([node("Optional", [], ["p"], type=tensor("float32", (2,)))], {}, {"p": tensor("float32", (2,))})
    with pytest.raises(RelayError, match="an optional of no known type"):
        import_onnx(data)


def test_loops_whose_optional_gets_a_value() -> None:
    """A loop variable is an option where the body gives a sequence in its place."""
    kind = option(OPEN)
    then = graph([node("OptionalGetElement", ["o"], ["p"])], {}, {"p": OPEN})
    other = graph([node("SequenceConstruct", ["x"], ["q"])], {}, {"q": OPEN})
    inside = graph(
        [
            node("OptionalHasElement", ["o"], ["h"]),
            node("If", ["h"], ["r"], then_branch=then, else_branch=other),
            node("SequenceInsert", ["r", "x"], ["t"]),
            constant("on", True),
        ],
        {"i": tensor("int64", ()), "go": tensor("bool", ()), "o": kind},
        {"on": tensor("bool", ()), "t": OPEN},
    )
    data = made(
        [constant("true", True), node("Loop", ["n", "true", "start"], ["ys"], body=inside)],
        {"n": tensor("int64", ()), "start": kind, "x": tensor("float32", (2, 3))},
        {"ys": OPEN},
    )
    x = floats(2, 3)
    for start in (None, [x, x + 1]):
        (found,) = prepare(data).run({"n": np.int64(3), "start": start, "x": x})
        alike(found, [*(start or [x]), x, x, x])


def test_branches_with_different_extents_read_back() -> None:
    inputs = {"x": tensor("float32", (2, 3)), "z": tensor("float32", (4, 3))}
    sides = [node("Neg", ["x"], ["p"])], [node("Neg", ["z"], ["q"])]
    data = branches(*sides, tensor("float32", ("?", 3)), inputs, [node("Abs", ["r"])], {"y": tensor("float32", None)})
    for cond in (False, True):
        compare(data, {"c": np.array(cond), "x": floats(2, 3), "z": floats(4, 3)})
