"""TVM's importers under TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import relaylang as relay
from relaylang.diagnostics import RelayError
from tests.frontends.onnx.models import model, node


def test_from_onnx_has_tvms_signature_and_results() -> None:
    import onnx

    from relaylang.frontend import from_onnx

    proto = onnx.ModelProto.FromString(model([node("Add", ["x", "w"])], {"x": ("n", 3)}, weights={"w": np.ones(3, "float32")}))
    mod, params = relay.frontend.from_onnx(proto, {"x": (2, 3)})
    assert params == {} and mod["main"].params[0].checked_type == relay.TensorType((2, 3), "float32")
    mod, params = from_onnx(proto, shape={"x": (relay.Any(), 3)}, freeze_params=False)
    assert list(params) == ["w"] and [p.name_hint for p in mod["main"].params] == ["x", "w"]
    value = relay.create_executor("debug", mod).evaluate()(np.ones((2, 3), "float32"), **params)
    assert np.array_equal(value.numpy(), np.full((2, 3), 2, "float32"))


#: An importer, the model that it reads, and the form in which it wants it.
IMPORTERS = {
    "from_mxnet": ("MXNet symbol", "a Symbol or HybridBlock of MXNet, a symbol's JSON, or the path of its file"),
    "from_onnx": ("ONNX model", "an onnx.ModelProto, a file's bytes, or its path"),
    "from_tflite": ("TFLite model", "a tflite.Model, a file's bytes, or its path"),
    "from_pytorch": ("model of PyTorch", "exported programs, script modules, and files of them"),
}


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_value_that_is_no_model_is_named(name: str) -> None:
    if name == "from_pytorch":
        pytest.importorskip("torch")
    values = {
        "None": None,
        "a value of type int": 7,
        "a value of type float": 1.5,
        "a value of type dict": {"a": 1},
        "a value of type list": [1],
        "a value of type tuple": (1, 2),
        "a value of type ndarray": np.zeros((2, 2)),
        "a value of type module": np,
        "the class int": int,
        "a value of type function": relay.var,
        "a value of type Var": relay.var("x"),
    }
    kind, wanted = IMPORTERS[name]
    for said, value in values.items():
        with pytest.raises(RelayError) as raised:
            getattr(relay.frontend, name)(value)
        (problem,) = raised.value.diagnostics
        assert (problem.code, problem.title) == ("R0804", f"{said} is no {kind}; the importer takes {wanted}")
        assert problem.notes == (("it is a program of Relay, and needs no importer",) if "Var" in said else ())
    for path, code in (("", "R0001"), ("no_such_file", "R0001"), (__file__, "R0802"), (b"", "R0802"), (b"no model", "R0802")):
        with pytest.raises(RelayError) as raised:
            getattr(relay.frontend, name)(path)
        assert raised.value.diagnostics[0].code == code


def test_a_model_of_another_kind_says_what_reads_it() -> None:
    import onnx

    with pytest.raises(RelayError, match=r"relay.frontend.from_onnx reads models of ONNX"):
        relay.frontend.from_tflite(onnx.ModelProto())
    torch = pytest.importorskip("torch")
    with pytest.raises(RelayError, match=r"and relay.frontend.from_pytorch reads it"):
        relay.frontend.from_onnx(torch.nn.Linear(2, 2))


def test_shapes_that_are_no_mapping_are_named() -> None:
    proto = model([node("Relu", ["x"])], {"x": (2, 3)})
    for shape in (3, (2, 3), {"x": "2x3"}, {0: (2, 3)}):
        with pytest.raises(RelayError) as raised:
            relay.frontend.from_onnx(proto, shape)
        assert raised.value.diagnostics[0].title == f"the shapes are {shape}; they are a mapping of names to shapes"
    with pytest.raises(RelayError) as raised:
        relay.frontend.from_onnx(proto, {"x": 3})  # a number is that of a named extent
    assert raised.value.diagnostics[0].title == "the model: the input x has 2 axes, not 1"
