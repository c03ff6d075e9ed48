"""What TVM's own tests of passes ask for, on programs of this project's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, Function, IRModule, structural_equal
from relaylang.transform import (
    ConvertLayout,
    Defunctionalization,
    DynamicToStatic,
    FoldConstant,
    FuseOps,
    InferType,
    Inline,
    Legalize,
    PassContext,
    PassTimingInstrument,
    SimplifyExpr,
    ToMixedPrecision,
    pass_instrument,
)


def typed(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def same(found: IRModule, text: str) -> bool:
    return structural_equal(InferType()(found), typed(text))


# ---- instruments


def watcher(name: str, seen: list[str], fails: str = "") -> Any:
    class Watch:
        def enter_pass_ctx(self) -> None:
            seen.append(f"{name} in")
            if fails == "enter":
                raise ValueError(name)

        def exit_pass_ctx(self) -> None:
            seen.append(f"{name} out")
            if fails == "exit":
                raise ValueError(name)

    return pass_instrument(Watch)()


def test_instruments_that_raise_on_entry_roll_back() -> None:
    seen: list[str] = []
    context = PassContext(instruments=[watcher("a", seen), watcher("b", seen, "enter"), watcher("c", seen)])
    with pytest.raises(ValueError, match="b"), context:
        pass
    assert seen == ["a in", "b in", "a out"]
    assert context.instruments == [] and PassContext.current() is not context


def test_instruments_that_raise_on_exit_are_dropped() -> None:
    seen: list[str] = []
    context = PassContext(instruments=[watcher("a", seen), watcher("b", seen, "exit"), watcher("c", seen)])
    with pytest.raises(ValueError, match="b"), context:
        seen.clear()
    assert seen == ["a out", "b out"] and context.instruments == []
    context.override_instruments([watcher("d", seen, "exit")])
    with pytest.raises(ValueError, match="d"):
        context.override_instruments(None)
    assert context.instruments == []


def test_times_end_with_the_context() -> None:
    timing = PassTimingInstrument()
    mod = relay.parse("def @main(%x: int32) { add(%x, 1) }")
    with PassContext(instruments=[timing]):
        InferType()(mod)
        assert "InferType" in timing.render()
    assert timing.render() == ""


def test_build_shows_its_steps_to_instruments() -> None:
    names: list[tuple[str, str]] = []

    class Names:
        def run_before_pass(self, mod: IRModule, info: Any) -> None:
            names.append(("before", info.name))

        def run_after_pass(self, mod: IRModule, info: Any) -> None:
            names.append(("after", info.name))

    with PassContext(instruments=[pass_instrument(Names)()]):
        relay.build(typed("def @main(%x: Tensor[(2), float32]) { exp(%x) }"))
    assert [n for when, n in names if when == "before"] == [n for when, n in names if when == "after"]
    assert ("before", "FuseOps") in names


# ---- simplification


@pytest.mark.parametrize("written", [
    "add(%x, zeros(shape=[3], dtype=\"bool\"))", "multiply(%x, ones(shape=[3], dtype=\"bool\"))", "multiply(%x, ones_like(%x))",
])  # fmt: skip
def test_neutral_booleans(written: str) -> None:
    mod = typed(f"def @main(%x: Tensor[(3), bool]) {{ {written} }}")
    assert same(SimplifyExpr()(mod), "def @main(%x: Tensor[(3), bool]) { %x }")


@pytest.mark.parametrize(("written", "expected"), [
    ("cast(cast(%c, dtype=\"uint8\"), dtype=\"int32\")", "cast(%c, dtype=\"int32\")"),
    ("cast(cast(cast(%c, dtype=\"uint8\"), dtype=\"int16\"), dtype=\"int32\")", "cast(%c, dtype=\"int32\")"),
    ("cast(cast(%c, dtype=\"int8\"), dtype=\"int32\")", None),
    ("cast(cast(%c, dtype=\"uint8\"), dtype=\"float32\")", None),
    ("cast(cast(%c, dtype=\"int32\"), dtype=\"int8\")", None),
])  # fmt: skip
def test_casts_of_clipped_floats(written: str, expected: str | None) -> None:
    text = "def @main(%x: Tensor[(3), float32]) {{ %0 = clip(%x, a_min=0f, a_max=255f); {} }}"
    mod = typed(text.format(written.replace("%c", "%0")))
    assert same(SimplifyExpr()(mod), text.format((expected or written).replace("%c", "%0")))


def test_a_cast_to_bool_says_whether_an_integer_is_zero() -> None:
    text = "def @main(%x: Tensor[(3), int32]) { cast(cast(clip(%x, a_min=-1f, a_max=1f), dtype=\"bool\"), dtype=\"int32\") }"
    assert same(SimplifyExpr()(typed(text)), text)


# ---- constants


def test_dropout_is_not_folded() -> None:
    text = "def @main() { %0 = nn.dropout(1f); add(%0.0, 2f) }"
    assert same(FoldConstant()(typed(text)), text)


def on_device(expr: Expr) -> Expr:
    return relay.op.annotation.on_device(expr, "cpu", constrain_result=True)


def test_constants_fold_where_they_are_placed() -> None:
    x = relay.var("x", shape=(), dtype="float32")
    first, second = relay.var("a", shape=(), dtype="float32"), relay.var("b", shape=(), dtype="float32")
    body = relay.Let(first, on_device(relay.const(1.0)),
                     relay.Let(second, on_device(relay.add(first, first)), on_device(relay.add(second, x))))  # fmt: skip
    found = FoldConstant()(InferType()(IRModule.from_expr(Function([x], body))))
    expected = on_device(relay.add(on_device(relay.const(2.0)), x))
    assert structural_equal(InferType()(found), InferType()(IRModule.from_expr(Function([x], expected))))


def test_fields_and_branches_of_what_is_placed() -> None:
    x = relay.var("x", shape=(), dtype="float32")
    pair = on_device(relay.Tuple([x, relay.const(1.0)]))
    chosen = relay.If(on_device(relay.const(True)), relay.TupleGetItem(pair, 1), x)
    found = FoldConstant()(InferType()(IRModule.from_expr(Function([x], chosen))))
    assert structural_equal(InferType()(found), InferType()(IRModule.from_expr(Function([x], on_device(relay.const(1.0))))))


def test_constants_inside_kernels() -> None:
    text = "def @main(%x: Tensor[(10), float32]) { take(concatenate((%x, %x), axis=0), meta[relay.Constant][0]) }"
    x = relay.var("x", shape=(10,))
    call = relay.take(relay.concatenate([x, x], axis=0), relay.const([0, 1], "int64"))
    mod = InferType()(IRModule.from_expr(Function([x], call)))
    for linked, number in ((False, 2), (True, 1)):
        with PassContext(config={"relay.FuseOps.link_params": linked}):
            body = FuseOps()(mod)["main"].body
        assert len(body.args) == number, text
        value = np.arange(10, dtype="float32")
        assert evaluate(InferType()(IRModule.from_expr(Function([x], body))), value).tolist() == [0, 1]


# ---- functions as values


def test_inlined_names_as_values() -> None:
    text = """
        def @f(%x: int32, Inline=1) -> int32 { add(%x, 1) }
        def @g(%x: int32, Inline=1) -> int32 { multiply(@f(%x), 2) }
        def @main(%p: bool, %x: int32) -> int32 { %0 = if (%p) { @f } else { @g }; add(%0(%x), @f(%x)) }
    """
    mod = typed(text)
    made = InferType()(Inline()(mod))
    assert [gv.name_hint for gv in made.functions] == ["main"]
    for p in (True, False):
        assert evaluate(made, p, np.int32(5)) == evaluate(mod, p, np.int32(5))


def test_polymorphic_functions_as_operands_become_data() -> None:
    text = """
        def @twice[A](%f: fn(A) -> A, %x: A) -> A { %f(%f(%x)) }
        def @same[A](%x: A) -> A { %x }
        def @main(%x: int32) -> int32 {
          %0 = fn[A](%a: A) -> A { %a };
          add(@twice(@same, %x), @twice(%0, %x))
        }
    """
    mod = typed(text)
    made = InferType()(Defunctionalization()(mod))
    assert evaluate(made, np.int32(7)) == evaluate(mod, np.int32(7)) == 14
    again = typed(text)
    again["main"] = Defunctionalization(again["main"], again)
    assert evaluate(InferType()(again), np.int32(7)) == 14


def test_a_polymorphic_function_without_a_use_that_fixes_it_is_refused() -> None:
    text = "def @main(%x: int32) -> int32 { %0 = (fn[A](%a: A) -> A { %a }, %x); %0.1 }"
    with pytest.raises(RelayError) as wrong:
        Defunctionalization()(typed(text))
    assert wrong.value.diagnostics[0].code == "R0515"


# ---- others


@pytest.mark.parametrize(("low", "high", "dtype", "kept"), [
    (-128, 127, "int8", False), (-127, 127, "int8", True), (-128, 127, "int16", True),
])  # fmt: skip
def test_clips_of_what_is_requantized(low: int, high: int, dtype: str, kept: bool) -> None:
    text = (f"def @main(%x: Tensor[(2), int32]) {{ %0 = qnn.requantize(%x, 1f, 0, 1f, 0, out_dtype=\"{dtype}\"); "
            f"clip(%0, a_min={low}f, a_max={high}f) }}")  # fmt: skip
    assert ("clip" in Legalize()(typed(text)).astext()) is kept


def test_lets_take_the_type_of_their_values() -> None:
    text = """def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(4, 4), float32]) {
        let %y: Tensor[(1, 4), float32] = nn.dense(%x, %w, units=None);
        let %z = add(%y, %y); nn.dense(%z, %w, units=None) }"""
    made = InferType()(ToMixedPrecision()(typed(text)))
    assert repr(made["main"].body.checked_type) == "Tensor[(1, 4), float16]"
    assert repr(made["main"].body.variable.checked_type) == "Tensor[(1, 4), float16]"


def test_conditions_that_are_known_before_types_are() -> None:
    x = relay.var("x", shape=(2, 2), dtype="int64")
    chosen = relay.If(relay.const(1), relay.reshape(x, [1, 4]), relay.reshape(x, [4, 1]))
    made = InferType()(DynamicToStatic()(IRModule.from_expr(Function([x], chosen))))
    assert repr(made["main"].body.checked_type) == "Tensor[(1, 4), int64]"


def test_shapes_whose_length_follows_from_another() -> None:
    x, y = relay.var("x", shape=(), dtype="int32"), relay.var("y", shape=(1, 2, 3), dtype="int64")
    shape = relay.shape_of(y)
    body = relay.full(x, relay.strided_slice(shape, [0], relay.shape_of(shape)), "int32")
    made = InferType()(DynamicToStatic()(IRModule.from_expr(Function([x, y], body))))
    assert repr(made["main"].body.checked_type) == "Tensor[(1, 2, 3), int32]"


def test_what_stays_without_types_is_refused() -> None:
    mod = relay.parse("def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }")
    with pytest.raises(RelayError) as wrong:
        DynamicToStatic()(mod)
    assert wrong.value.diagnostics[0].code == "R0301"


def test_simulated_quantization_takes_the_layout_of_its_data() -> None:
    head = """def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(8, 8, 3, 3), float32], %s: float32, %a: float32, %b: float32) {
        """
    conv = "nn.conv2d({}, {}, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]{})"
    simulated = "relay.op.annotation.simulated_quantize({}, %s, %a, %b, kind=1)"
    before = head + f"nn.relu({simulated.format(conv.format('%x', '%w', ''))}) }}"
    layouts = ", data_layout=\"NHWC\", kernel_layout=\"OHWI\""
    after = head + f"""%0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
        %1 = layout_transform(%w, src_layout="OIHW", dst_layout="OHWI");
        %2 = nn.relu({simulated.format(conv.format('%0', '%1', layouts))});
        layout_transform(%2, src_layout="NHWC", dst_layout="NCHW") }}"""
    assert same(ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]})(typed(before)), after)
