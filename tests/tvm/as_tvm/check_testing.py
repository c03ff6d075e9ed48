"""`tvm.relay.testing`, `tvm.topi.testing` and helpers around them. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import tvm
import tvm.relay.testing
import tvm.topi.testing
from tvm import relay
from tvm.relay.backend.interpreter import ConstructorValue
from tvm.relay.loops import while_loop
from tvm.relay.testing import check_grad, count, make_nat_expr, make_nat_value, run_infer_type, run_opt_pass

from relaylang.syntax import astext
from tests.shared import GOLDEN, needs_shared

#: Network -> its options, and TVM 0.16's text (MD5) and parameters (MD5 of the values, by name).
WORKLOADS: list[tuple[str, dict[str, Any], str, str]] = [
    ("mlp", {"batch_size": 1}, "4781064d54b1d3d6431789144c1ab6b9", "e2e77882370a39cee877e31108c3aa46"),
    ("dqn", {"batch_size": 1}, "327f63790260f4adcfb74ae5e8d97083", "2f6aaac4bb050db3a09d445667a53fa0"),
    ("dcgan", {"batch_size": 1}, "cbf33b16e1c27e52c6b24e13cfa03f1c", "2f13d078cedd958bc04ef7129eb2e303"),
    ("dcgan", {"batch_size": 2, "layout": "NHWC"}, "eb106fae7f5a64fc80fc59a12638cf81", "5bb570deff7a6cda12e707f39a3d4136"),
    ("mobilenet", {}, "05678acb0f25648e52a20a4395dc3334", "299703649bba5e42267838e34e3552ea"),
    (
        "mobilenet",
        {"layout": "NHWC", "image_shape": (224, 224, 3)},
        "1dda0bc0f498602fa5092748c3d47de8",
        "1c8ab05fddf7c3128ce0425423b2c8ea",
    ),
    ("squeezenet", {}, "07b3e908f38411c23477475fe90bc763", "7d076e8ea77cc91751f29be159892733"),
    ("squeezenet", {"version": "1.1"}, "5650b19a9f11c3214b41b17cd73e9d4a", "6fd6006f930d233fddd5af27f04f6398"),
    ("synthetic", {}, "494f884ad5c33f8c8e4d2dc61e511f1c", "910e806b444b4bda66bdebf5d5d39990"),
    ("resnet", {}, "5dec01094ae417f36d556893f80a8665", "eef3e9eb611881769043c71b0d09d712"),
    ("resnet", {"num_layers": 50}, "180abf7676a5c5ced0a4e56871515e44", "3253122397cb854fc970060c4f7d2f58"),
    (
        "resnet",
        {"layout": "NHWC", "image_shape": (224, 224, 3)},
        "877696fefe7da028f20e2a839b5d24e5",
        "b94de99a1fd911f7782aa1f33c4c991b",
    ),
    ("resnet", {"num_layers": 20, "image_shape": (3, 28, 28)}, "e362305ecfe5dd2b19a4a8e410d201ee", "21bd613bc208f6b3e9f50e946bd8377c"),
    ("resnet_3d", {}, "c8705d10216c5d3492edb535b94a9664", "44a94e2e5b5b11175dfb8b89eafb9a06"),
    ("resnet_3d", {"num_layers": 50}, "ac5753fbf5616bc5be0a7d429534a1ca", "56e9f556bf423703783c811934a96157"),
    (
        "vgg",
        {"batch_size": 1, "num_layers": 16, "batch_norm": True, "image_shape": (3, 32, 32)},
        "0c05867a59e3328ae895ca6097a17c52",
        "53a17f686f431cb87d94c99f55d742f6",
    ),
    ("densenet", {}, "41c5413f59340a3627a80e25955dd794", "2b4df6726ba58f82206ecd28a14c53c2"),
    ("inception_v3", {}, "f10b8ff3947b24919f34ed47a2cd768f", "5f9c069fdc018986c991c08586485743"),
    ("lstm", {"iterations": 2, "num_hidden": 4}, "cc6860c606a8685fae0e9485e54274d7", "1b89857309fd62d12ac85d30ff71fb35"),
]

#: Networks whose weights take seconds.
LARGE = {"vgg", "resnet", "resnet_3d", "inception_v3", "densenet", "dcgan"}


@pytest.mark.parametrize(
    "name, options, text, values",
    [
        pytest.param(*row, id="-".join(map(str, (row[0], *row[1].values()))), marks=pytest.mark.sweep if row[0] in LARGE else ())
        for row in WORKLOADS
    ],
)
def test_networks_are_those_of_tvm(name: str, options: dict[str, Any], text: str, values: str) -> None:
    mod, params = getattr(relay.testing, name).get_workload(**options)
    assert hashlib.md5(astext(mod, style="tvm", show_meta_data=False).encode()).hexdigest() == text
    digest = hashlib.md5()
    for param in sorted(params):
        digest.update(params[param].numpy().tobytes())
    assert digest.hexdigest() == values


@needs_shared
@pytest.mark.parametrize(
    "name, options",
    [
        ("mlp", {"batch_size": 1}),
        ("dqn", {"batch_size": 1}),
        ("mobilenet", {}),
        ("squeezenet", {}),
        ("synthetic", {}),
    ],
)
def test_texts_are_the_golden_ones(name: str, options: dict[str, Any]) -> None:
    mod, _ = getattr(relay.testing, name).get_workload(**options)
    assert astext(mod, style="tvm") == (GOLDEN / f"{name}.typed.relay").read_text()


def test_networks_that_do_not_exist() -> None:
    wrong = (("resnet", {"num_layers": 19}), ("vgg", {"batch_size": 1, "num_layers": 12}), ("squeezenet", {"version": "2"}))
    for module, options in wrong:
        with pytest.raises(ValueError, match=r"19|12|2"):
            getattr(relay.testing, module).get_workload(**options)
    with pytest.raises(ValueError, match="ends with none of"):
        relay.testing.init.Xavier()("scale", np.zeros((2, 2)))


def test_a_loop_counts() -> None:
    i = relay.var("i", shape=(), dtype="int32")
    loop = while_loop(
        lambda i, s: relay.less(i, relay.const(5)), [i, relay.const(1)], lambda i, s: (i + relay.const(1), s * relay.const(2))
    )
    func = relay.Function([i], relay.Call(loop, [i, relay.const(1)]))
    value = relay.create_executor("debug").evaluate(func)(np.array(1, "int32"))
    assert [int(v.numpy()) for v in value] == [5, 16]


def test_numbers_as_data() -> None:
    mod = tvm.IRModule()
    mod.import_from_std("nat.rly")
    prelude = relay.Prelude(mod)
    value = relay.create_executor("debug", mod).evaluate(make_nat_expr(prelude, 4))
    assert isinstance(value, ConstructorValue) and count(prelude, value) == 4 == count(prelude, make_nat_value(prelude, 4))
    _, zero, _ = mod.get_type("nat")
    assert ConstructorValue(zero.tag, [], zero).constructor is zero


def test_passes_over_expressions() -> None:
    x = relay.var("x", shape=(2,))
    assert run_infer_type(relay.exp(x)).checked_type == relay.TensorType((2,))
    folded = run_opt_pass(relay.add(relay.const(1), relay.const(2)), relay.transform.FoldConstant())
    assert isinstance(folded, relay.Constant) and folded.data.numpy() == 3
    assert relay.testing.count_ops(relay.exp(relay.exp(x))) == {"exp": 2}
    y = relay.var("y", shape=(2, 3), dtype="float64")
    check_grad(relay.Function([y], relay.tanh(y)), target_devices=[("llvm", None)])


def test_equality_finds_missing_types() -> None:
    def program(annotated: bool) -> relay.Function:
        x = relay.var("x", shape=(2,))
        return relay.Function([x], relay.exp(x), relay.TensorType((2,)) if annotated else None)

    assert tvm.ir.structural_equal(program(True), program(False)) and tvm.ir.structural_equal(program(False), program(True))
    with pytest.raises(ValueError, match="not structurally equal"):
        tvm.ir.assert_structural_equal(program(True), relay.Function([], relay.const(1)))


class Widths(relay.TypeMutator):
    """Makes every tensor one of 64 bits."""

    def visit_tensor_type(self, tt: relay.TensorType) -> relay.TensorType:
        return relay.TensorType(tt.shape, "float64")


def test_visitors_of_types() -> None:
    wide = relay.TensorType((3,), "float64")
    byte = relay.scalar_type("int8")
    before = relay.FuncType([byte], relay.TupleType([byte, relay.RefType(relay.TensorType((3,)))]))
    made = Widths().visit(before)
    double = relay.scalar_type("float64")
    assert made == relay.FuncType([double], relay.TupleType([double, relay.RefType(wide)]))
    seen: list[relay.TensorType] = []

    class Tensors(relay.TypeVisitor):
        def visit_tensor_type(self, tt: relay.TensorType) -> None:
            seen.append(tt)

    Tensors().visit(made)
    assert len(seen) == 3
    with pytest.raises(NotImplementedError, match="no visit_tensor_type"):
        relay.TypeFunctor().visit(wide)


def conv(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    out = np.zeros((a.shape[0], w.shape[0], a.shape[2] - 2, a.shape[3] - 2))
    for y, x in np.ndindex(*out.shape[2:]):
        out[:, :, y, x] = np.einsum("nchw,ochw->no", a[:, :, y : y + 3, x : x + 3], w)
    return out


def test_what_operators_compute() -> None:
    ref = tvm.topi.testing
    rng = np.random.default_rng(0)
    a, w = rng.random((1, 3, 6, 5)), rng.random((4, 3, 3, 3))
    np.testing.assert_allclose(ref.conv2d_nchw_python(a, w, 1, 0), conv(a, w), rtol=1e-12)
    same = conv(np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1))), w)
    for padding in (1, (1, 1), (1, 1, 1, 1), "SAME"):
        np.testing.assert_allclose(ref.conv2d_nchw_python(a, w, (1, 1), padding), same, rtol=1e-12)
    last = ref.conv2d_nhwc_python(a.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), 1, 0)
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), conv(a, w), rtol=1e-12)
    pooled = ref.poolnd_python(a, (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), "max", dtype="float64")
    assert pooled.tolist() == a[:, :, :6, :4].reshape(1, 3, 3, 2, 2, 2).max((3, 5)).tolist()
    assert ref.one_hot(np.array([2, 0]), 1, -1, 3, 0, "int8").tolist() == [[-1, 1], [-1, -1], [1, -1]]
    assert ref.dilate_python(np.ones((2, 2)), (1, 2)).tolist() == [[1, 0, 1], [1, 0, 1]]
    data = np.arange(24).reshape(4, 6)
    assert ref.strided_slice_python(data, [1, 5], [3, 0], [1, -2]).tolist() == data[1:3, 5:0:-2].tolist()
    assert ref.strided_slice_python(data, [1, 2], [-1, 3], None, "size").tolist() == data[1:, 2:5].tolist()
    assert ref.strided_slice_python(data, [1], [3], [1], axes=[1]).tolist() == data[:, 1:3].tolist()
    x, y = rng.random((2, 3, 4)), rng.random((2, 5, 4))
    np.testing.assert_allclose(ref.batch_matmul(x, y), x @ y.transpose(0, 2, 1))


def test_recasting_puts_casts_around_calls() -> None:
    x, w = relay.var("x", shape=(1, 2, 4, 4)), relay.var("w", shape=(2, 2, 1, 1))
    net = relay.Function([x, w], relay.nn.conv2d(relay.nn.conv2d(x, w), w))
    made = relay.transform.recast(net, "int8", "int32", skip_layers=[-1])
    first = relay.cast(relay.nn.conv2d(relay.cast(x, "int8"), relay.cast(w, "int8"), out_dtype="int32"), "float32")
    assert tvm.ir.structural_equal(made, relay.Function([x, w], relay.nn.conv2d(first, w)))
    whole = relay.transform.recast(tvm.IRModule.from_expr(net), "int8", "int32")
    assert relay.testing.count_ops(run_infer_type(whole["main"])) == {"nn.conv2d": 2, "cast": 6}


def test_the_passes_of_a_build() -> None:
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.exp(x + w)))
    with tvm.transform.PassContext(opt_level=3, required_pass=["FastMath"]):
        made, params = relay.optimize(mod, target="llvm", params={"w": tvm.nd.array(np.ones(2, "float32"))})
    assert "fast_exp" in made.astext() and params == {} and len(made["main"].params) == 1


def test_tables_of_functions() -> None:
    from tvm.relay.qnn.op.canonicalizations import create_integer_lookup_op, run_const_expr

    x = relay.const(np.arange(-128, 128, dtype="int8"))
    scale, zero = relay.const(0.1), relay.const(3)
    call = create_integer_lookup_op(x, np.tanh, scale, zero, relay.const(1 / 127), relay.const(0), in_dtype="int8", out_dtype="int8")
    wanted = np.round(np.tanh((np.arange(-128, 128) - 3) * np.float32(0.1)) / np.float32(1 / 127)).clip(-128, 127)
    assert np.abs(run_const_expr(call) - wanted).max() == 0
    with pytest.raises(ValueError, match="one of integers, not of float32"):
        create_integer_lookup_op(x, np.tanh, scale, zero, scale, zero, out_dtype="float32")


def test_values_of_references_to_metadata() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][1]) }'
    table = {"relay.Constant": [relay.const([0.0]), relay.const([1.0, 2.0])]}
    mod = relay.parse(text, "from_string", None, table)
    assert mod["main"].body.args[1].data.numpy().tolist() == [1, 2] and mod["main"].ret_type == relay.TensorType((2,))


def test_regions_for_the_c_compiler() -> None:
    from tvm.relay.testing.byoc import CcompilerAnnotator

    x, y, z = (relay.var(name, shape=(2,)) for name in "xyz")
    made = CcompilerAnnotator().visit(relay.multiply(relay.subtract(relay.add(x, y), z), y))
    assert relay.testing.count_ops(made) == {
        "add": 1,
        "subtract": 1,
        "multiply": 1,
        "annotation.compiler_begin": 4,
        "annotation.compiler_end": 1,
    }


def test_a_functor_without_methods() -> None:
    for kind in (NotImplementedError, TypeError):
        with pytest.raises(kind, match="ExprFunctor met a Constant and has no visit_constant"):
            relay.ExprFunctor().visit(relay.const(1))
    relay.backend.te_compiler.get().clear()
