"""Models that are damaged, wrong, or beyond Relay: one diagnostic each, with the layer."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.diagnostics import RelayError
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from tests.frontends.onnx.models import model, node

X = {"x": (2, 3)}


def wrong(data: object, **options: object) -> tuple[str, str]:
    """The code of the first diagnostic, and all text."""
    with pytest.raises(RelayError) as raised:
        import_onnx(data, Options(**options), file="net.onnx")
    return raised.value.diagnostics[0].code, str(raised.value)


def test_the_table_of_what_cannot_be_converted() -> None:
    code, text = wrong(model([node("Foo", ["x"], ["a"]), node("Foo", ["a"], ["b"]), node("Realu", ["b"])], X))
    assert code == "R0801"
    assert "2 x Foo    first in a" in text and "did you mean Relu?" in text and "3 layers of 2 operators" in text


def test_partial_leaves_an_external_function() -> None:
    import onnx

    proto = onnx.ModelProto.FromString(model([node("Relu", ["x"], ["a"]), node("Foo", ["a"], ["y"])], X))
    proto.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", 1, [5]))
    made = import_onnx(proto, Options(partial=True), file="net.onnx")
    assert [d.severity for d in made.notes] == ["warning"]
    assert "@extern_Foo" in made.module.astext()


def test_damaged_files() -> None:
    good = model([node("Relu", ["x"])], X)
    assert wrong(good[: len(good) // 2])[0] == "R0802"
    assert wrong(b"\x00\xff" * 100)[0] == "R0802"
    assert wrong(b"")[0] == "R0802"
    assert wrong(model([node("Relu", ["nothing"])], X)) == (
        "R0802",
        "net.onnx:2:1: error[R0802]: no layer before this one makes the tensor nothing\n"
        "    2 | y = Relu(nothing)\n      | ^^^^^^^^^^^^^^^^^\n"
        "  = note: an ONNX graph lists its layers in the order of their computation, without cycles",
    )
    assert wrong(model([node("Relu", ["x"])], X, opset=999))[0] == "R0807"


def test_a_weight_of_the_wrong_size() -> None:
    import onnx

    proto = onnx.ModelProto.FromString(model([node("Add", ["x", "w"])], X, weights={"w": np.ones(3, "float32")}))
    proto.graph.initializer[0].raw_data = b"1234"
    assert "has 4 bytes, but its shape (3,) of float32 needs 12" in wrong(proto)[1]
    proto.graph.initializer[0].dims[:] = [1 << 40, 1 << 40]
    assert wrong(proto)[0] == "R0802"


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd"])
def test_external_data_stays_in_its_folder(tmp_path, location: str) -> None:
    import onnx

    proto = onnx.ModelProto.FromString(model([node("Add", ["x", "w"])], X, weights={"w": np.ones(3, "float32")}))
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = 1
    weight.external_data.add(key="location", value=location)
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_bytes(bytes(12))
    path = tmp_path / "in" / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    assert "outside the model's folder" in wrong(str(path))[1]


def test_options_that_do_not_fit() -> None:
    good = model([node("Relu", ["x"])], X)
    assert wrong(good, shapes={"y": (1,)})[0] == "R0804"
    assert "has 2 axes, not 1" in wrong(good, shapes={"x": (1,)})[1]


def test_operands_that_do_not_fit() -> None:
    code, text = wrong(model([node("Reshape", ["x"])], X))
    assert code == "R0805" and "Reshape y" in text


def test_a_missing_package(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'relaylang[onnx]'" in wrong(b"")[1]


def squeezing(axes: object) -> bytes:
    """PyTorch's form of a squeeze: axis 1 goes where its extent is 1."""
    from onnx import helper

    branches = [
        helper.make_graph([node("Squeeze", ["x", "one"], ["s"])], "then", [], [helper.make_empty_tensor_value_info("s")]),
        helper.make_graph([node("Identity", ["x"], ["i"])], "else", [], [helper.make_empty_tensor_value_info("i")]),
    ]
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "one"], ["extent"]),
        node("Equal", ["extent", "one"], ["is"]),
        node("If", ["is"], then_branch=branches[0], else_branch=branches[1]),
    ]
    return model(nodes, {"x": (2, axes, 3)}, weights={"one": np.array([1])})


def test_a_conditional_squeeze_of_an_unknown_extent() -> None:
    made = import_onnx(squeezing("n"))
    assert [d.severity for d in made.notes] == ["warning"] and "the extent must be 1" in made.notes[0].title
    assert made.module["main"].ret_type.shape == (2, 3)
    assert import_onnx(squeezing(1)).notes == [] and len(import_onnx(squeezing(4)).module["main"].ret_type.shape) == 3


def test_a_branch_that_does_not_fit_is_left_out() -> None:
    from onnx import helper

    def branch(name: str, weight: str) -> object:
        return helper.make_graph([node("Add", ["x", weight], [name])], name, [], [helper.make_empty_tensor_value_info(name)])

    weights = {"three": np.ones(3, "float32"), "four": np.ones(4, "float32")}
    layer = node("If", ["c"], then_branch=branch("a", "four"), else_branch=branch("b", "three"))
    made = import_onnx(model([layer], {"x": (2, 3), "c": ()}, weights=weights, dtypes={"c": "bool"}))
    assert [d.severity for d in made.notes] == ["warning"] and "the then branch of If y does not fit" in made.notes[0].title
    layer = node("If", ["c"], then_branch=branch("a", "four"), else_branch=branch("b", "four"))
    assert wrong(model([layer], {"x": (2, 3), "c": ()}, weights=weights, dtypes={"c": "bool"}))[0] == "R0301"
