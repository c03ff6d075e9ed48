"""Conventions of TVM on nodes, types, targets and passes. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relay, te, tir


def test_texts_have_no_version() -> None:
    x = relay.var("x", shape=(2, 3))
    f = relay.Function([x], relay.nn.relu(x))
    assert str(f) == "fn (%x: Tensor[(2, 3), float32]) {\n  nn.relu(%x)\n}"
    assert str(tvm.IRModule.from_expr(f)).startswith("def @main(%x")
    assert tvm.IRModule.from_expr(f).astext().startswith('#[version = "0.0.5"]')
    assert str(x.type_annotation) == "Tensor[(2, 3), float32]"


def test_extents_have_values() -> None:
    ty = relay.TensorType((2, tir.IntImm("int64", 3), relay.Any()), "int8")
    assert [d.value for d in ty.shape[:2]] == [2, 3] and int(ty.shape[0]) == 2 and ty.shape is ty.shape
    assert isinstance(ty.shape[0], tir.IntImm) and isinstance(ty.shape[1], tir.IntImm) and isinstance(ty.shape[2], tir.Any)
    assert ty.shape[0].dtype == "int32" and ty.shape[1].dtype == "int64" and str(ty.shape[0]) == "2"
    assert ty == relay.TensorType((2, tir.IntImm("int64", 3), relay.Any()), "int8")
    assert tvm.ir.structural_equal(relay.TensorType((2,)), relay.TensorType((tir.IntImm("int32", 2),)))


def test_named_extents_are_computed_with() -> None:
    n, m = te.var("n"), te.size_var("m", "int64")
    assert isinstance(n, tir.Var) and isinstance(m, tir.SizeVar) and not isinstance(n, tir.SizeVar) and isinstance(m, tir.Var)
    assert (n.name, m.dtype) == ("n", "int64") and n + 0 is n and 1 * n is n and n // 1 is n
    made = n * 2 + 1
    assert made is n * 2 + 1 and made is not n * 2 + 3 and isinstance(made, tir.PrimExpr)
    assert str(relay.TensorType((made, (n + 1) // 2))) == "Tensor[(2 * n + 1, (n + 1) / 2), float32]"
    assert relay.Any() + 1 is relay.Any() and tir.floordiv(7, 2) == 3 and tir.max_value("int8") == 127
    x = relay.var("x", shape=(n, 4))
    assert relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))["main"].ret_type.shape[0] is n


def test_results_have_computed_extents() -> None:
    n, m = te.var("n"), te.size_var("m")
    x, y = relay.var("x", shape=(n, 2, 6)), relay.var("y", shape=(m, 2, 6))
    both = relay.concatenate([x, relay.nn.pad(y, ((1, 2), (0, 0), (0, 0)))], axis=0)
    out = relay.Tuple([relay.nn.batch_flatten(relay.transpose(both)), relay.split(x, [1], axis=0)[1]])
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], out)))
    rows = n + (m + 3)
    assert mod["main"].ret_type == relay.TupleType([relay.TensorType((6, 2 * rows)), relay.TensorType((n - 1, 2, 6))])
    given = np.arange(24, dtype="float32").reshape(2, 2, 6), np.ones((3, 2, 6), "float32")
    for kind in ("debug", "vm"):
        flat, rest = relay.create_executor(kind, mod).evaluate()(*given)
        assert flat.shape == (6, 16) and rest.numpy().tolist() == given[0][1:].tolist()
    product = relay.nn.dense(relay.var("x", shape=(n, 2)), relay.var("w", shape=(4, m)))
    made = relay.transform.InferType()(tvm.IRModule.from_expr(product))["main"].body
    assert made.checked_type == relay.TensorType((n, 4)) and made.type_args[1].shape[1] is m
    assert "Tensor" not in relay.Call(made.op, made.args, made.attrs, made.type_args).astext().splitlines()[-1]


def test_constants_have_numpy() -> None:
    c = relay.const(np.arange(3, dtype="int8"))
    assert type(c.data.numpy()) is np.ndarray and c.data.asnumpy().tolist() == [0, 1, 2] and c.data is c.data
    assert (c.data.dtype, c.data.shape) == (np.int8, (3,)) and relay.const(2.5).data.numpy().item() == 2.5


def test_attributes_of_functions() -> None:
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], x).with_attr("Compiler", "mine").with_attr("Primitive", tir.IntImm("int32", 1))
    assert f.attrs.Compiler == f.attrs["Compiler"] == "mine" and "Compiler" in f.attrs and dict(f.attrs)["Primitive"] == 1
    assert f.attrs.Primitive.value == 1 and not relay.Function([x], x).attrs
    with pytest.raises(AttributeError, match="there is no attribute global_symbol"):
        f.attrs.global_symbol  # noqa: B018


def test_operators_and_their_attributes() -> None:
    relu = tvm.ir.Op.get("nn.relu")
    assert relu is relay.op.get("nn.relu") and relu.name == "nn.relu" and relu.num_inputs == 1
    assert "nn.conv2d" in tvm.ir.Op.list_op_names()
    with pytest.raises(ValueError, match=r"no operator nn\.rellu"):
        tvm.ir.Op.get("nn.rellu")
    tvm.ir.register_op_attr("nn.relu", "check.cost", 3)
    assert relu.get_attr("check.cost") == 3 and relu.has_attr("check.cost") and not relu.has_attr("check.none")
    relu.set_attr("check.cost", 5, 11)
    assert relu.get_attr("check.cost") == 5
    relu.reset_attr("check.cost")
    assert relu.get_attr("check.cost") is None

    @tvm.ir.register_op_attr("nn.relu", "target.check")
    def supported(call: relay.Call) -> bool:
        return True

    assert relu.get_attr("target.check") is supported and relu.get_attr("TOpPattern") == 0


def test_targets_are_texts_with_parts() -> None:
    target = tvm.target.Target("llvm -mcpu=skylake -keys=arm_cpu,cpu", host="c")
    assert (target.kind.name, target.mcpu, target.keys, target.host.kind.name) == ("llvm", "skylake", ["arm_cpu", "cpu"], "c")
    assert tvm.target.Target.current() is None
    with target:
        assert tvm.target.Target.current() is target
    assert tvm.target.Target({"kind": "cuda", "arch": "sm_80"}).attrs == {"arch": "sm_80"}
    assert tvm.target.Target("cuda").keys == ["cuda", "gpu"] and tvm.target.Target(target).mcpu == "skylake"


def test_passes_return_typed_modules() -> None:
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { let %f = fn (%y) { negative(%y) }; %f(%x) }')
    assert mod["main"].ret_type == relay.TensorType((2,)) and mod["main"].body.value.ret_type == relay.TensorType((2,))

    @tvm.transform.module_pass(opt_level=1)
    def untyped(mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tvm.IRModule:
        x = relay.var("x", shape=(2,))
        return tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))

    made = tvm.transform.Sequential([untyped])(mod)
    assert made["main"].body.checked_type == relay.TensorType((2,)) == made["main"].ret_type
    with pytest.raises(tvm.TVMError, match="axis"):
        relay.parse("def @main(%x: Tensor[(2), float32]) { nn.softmax(%x, axis=2) }")


def test_a_renderer_sees_the_diagnostics() -> None:
    from tvm.ir.diagnostics import get_renderer, override_renderer

    seen: list[str] = []
    override_renderer(lambda context: seen.extend(d.message for d in context.diagnostics))
    try:
        with pytest.raises(tvm.error.DiagnosticError):
            relay.parse("def @main(%x: Tensor[(2), float32]) { nn.softmax(%x, axis=2) }")
        x = relay.var("x", shape=(2,))
        with pytest.raises(tvm.error.DiagnosticError):
            relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.softmax(x, axis=3)))
    finally:
        override_renderer(None)
    assert len(seen) == 2 and "axis" in seen[0] and "axis" in seen[1] and get_renderer().render_func is not None


def test_calls_of_a_text_have_places() -> None:
    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { exp(%x) }")
    assert tvm.ir.structural_equal(relay.SpanCheck()(mod), mod)
    with pytest.raises(tvm.TVMError, match="a call in @main has no place"):
        relay.SpanCheck()(tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,)))))


def test_places_that_a_script_states_are_in_texts() -> None:
    x = relay.var("x", shape=(2,))
    y = relay.exp(x)
    placed = relay.Call(y.op, y.args, y.attrs, y.type_args, relay.Span(relay.SourceName("layer */ 1"), 3, 3, 4, 9))
    text = relay.Function([x], relay.negative(placed)).astext()
    assert "exp(%x) /* span=layer * / 1:3:4 */" in text and text.count("span=") == 1
    assert "span=" not in relay.parse(text).astext()


def test_numbers_of_nodes_are_places() -> None:
    mod = relay.parse("def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { %0 = exp(%x); (add(%0, %x), %0) }")
    made = relay.transform.CapturePostDfsIndexInSpans()(mod)
    places = {}
    tvm.relay.analysis.post_order_visit(made["main"], lambda n: n.span and places.update({n.span.line: n.span.column}))
    # x, y, add, exp, then the calls, the tuple and the function
    assert places == {0: 6, 1: -1, 4: 6, 5: 6, 6: 7, 7: -1}
    assert "span=index" not in str(mod) and tvm.ir.structural_equal(mod, made)


def test_instruments_watch_passes() -> None:
    @tvm.instrument.pass_instrument
    class Names:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def run_before_pass(self, mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
            self.seen.append(info.name)

    names = Names()
    with tvm.transform.PassContext(opt_level=3, instruments=[names]):
        relay.transform.FoldConstant()(relay.parse("def @main() { add(1, 2) }"))
    assert "FoldConstant" in names.seen


@tvm.testing.parametrize_targets("llvm", "cuda")
def test_targets_of_tests(target: str) -> None:
    assert target == "llvm"


@tvm.testing.requires_gpu
def test_without_a_gpu() -> None:
    raise AssertionError("there is none")


size, name = tvm.testing.parameters((1, "a"), (2, "b"))
factor = tvm.testing.parameter(10, 20)


@tvm.testing.fixture(cache_return_value=True)
def product(size: int, factor: int) -> int:
    return size * factor


def test_parameters_go_together(size: int, name: str, factor: int, product: int) -> None:
    assert (size, name) in [(1, "a"), (2, "b")] and product == size * factor


def test_closeness_has_an_absolute_part() -> None:
    tvm.testing.assert_allclose(np.array([1e-9]), np.zeros(1))
    for wrong in (np.array([1e-6]), np.zeros(2)):
        with pytest.raises(AssertionError):
            tvm.testing.assert_allclose(wrong, np.zeros(1))
    x = np.array([1.0, 2.0])
    tvm.testing.check_numerical_grads(lambda x: np.sum(x**2), [x], [2 * x])
    with pytest.raises(AssertionError, match="gradient of 0"):
        tvm.testing.check_numerical_grads(lambda x: np.sum(x**2), [x], [3 * x])


def test_there_is_no_llvm() -> None:
    assert tvm.target.codegen.llvm_version_major() == 0 and tvm.target.codegen.llvm_version_major(allow_none=True) is None


def test_a_constructed_value_has_its_fields() -> None:
    mod = tvm.IRModule()
    prelude = relay.prelude.Prelude(mod)
    _, cons, nil = prelude.mod.get_type("List")
    pair = relay.create_executor("debug", mod).evaluate(cons(relay.const(1), nil()))
    assert isinstance(pair, tvm.runtime.container.ADT) and len(pair) == 2 and pair[0].numpy() == 1
    assert [len(part) for part in pair if isinstance(part, tvm.runtime.container.ADT)] == [0] and bool(pair[1])


def test_quantisation() -> None:
    data, weight = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    conv = relay.nn.conv2d(data, weight, padding=(1, 1), channels=4, kernel_size=(3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([data, weight], conv))
    params = {"w": tvm.nd.array(np.ones((4, 4, 3, 3), "float32"))}
    with relay.quantize.qconfig(skip_conv_layers=[], partition_conversions="fully_integral"):
        made = relay.quantize.quantize(mod, params)
    assert {gv.name_hint for gv in made.get_global_vars()} == {"main", "quantize_inputs", "quantized_main", "dequantize_outputs"}
    # TVM asserts
    with relay.quantize.qconfig(partition_conversions="fully_integral"), pytest.raises(AssertionError, match="not in whole numbers"):
        relay.quantize.quantize(mod, params)
    from tvm.relay.quantize._annotate import QAnnotateKind, attach_simulated_quantize

    rounded = attach_simulated_quantize(data, QAnnotateKind.INPUT)
    assert rounded.op.name == "relay.op.annotation.simulated_quantize" and rounded.attrs.kind == 1
    assert attach_simulated_quantize(rounded, QAnnotateKind.INPUT) is rounded


def test_types_below_functions_that_say_their_results() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    inner = relay.Function([y], relay.add(y, y))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.Call(inner, [x])))))
    found: list[object] = []
    relay.analysis.post_order_visit(mod["main"], found.append)
    assert all(node.checked_type is not None for node in found if not isinstance(node, tvm.ir.Op))  # type: ignore[attr-defined]


def test_types_stay_where_nothing_is_said_anew() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule()
    mod["f"] = relay.Function([x], relay.nn.relu(x), relay.TensorType((2,)))
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], relay.Call(mod.get_global_var("f"), [y]), relay.TensorType((2,)))
    assert relay.transform.InferType()(mod)["main"].checked_type.ret_type == relay.TensorType((2,))


def test_a_pass_of_the_script_returns_its_module() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.log(x)))
    assert tvm.transform.module_pass(lambda given, ctx: mod, opt_level=1)(tvm.IRModule.from_expr(x)) is mod


def test_places_of_variables_and_functions() -> None:
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], x)
    assert not x.virtual_device_ and not f.virtual_device_
    x.virtual_device_ = f.virtual_device_ = tvm.cpu()
    assert x.virtual_device.device_type == f.attrs["virtual_device"].device_type == f.virtual_device_.device_type_int == 1


def test_inference_keeps_the_places_of_variables() -> None:
    x, y = relay.var("x"), relay.var("y", shape=(2,))
    x.virtual_device_ = tvm.cuda()
    mod = tvm.IRModule.from_expr(relay.Function([y], relay.Call(relay.Function([x], relay.log(x)), [y])))
    (inner,) = relay.transform.InferType()(mod)["main"].body.op.params
    assert str(inner.type_annotation) == "Tensor[(2), float32]" and inner.virtual_device_.device_type_int == 2
