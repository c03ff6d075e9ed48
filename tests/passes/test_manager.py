"""The pass manager: contexts, instruments, decorators, lists of passes as text, and passes that go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Function, IRModule, TensorType, Var
from relaylang.ir.structural import assert_structural_equal, structural_equal
from relaylang.ops.build import op_call
from relaylang.plugins.files import load_file
from relaylang.testing.generators.programs import Programs
from relaylang.transform import (
    FuseOps,
    InferType,
    PassContext,
    PassTimingInstrument,
    PrintChanged,
    PrintIRAfter,
    PrintIRBefore,
    Sequential,
    SimplifyInference,
    Verify,
    function_pass,
    module_pass,
    parse_passes,
    pass_instrument,
)
from tests.passes.meaning import keeps_meaning
from tests.shared import golden, needs_shared


def program(text: str = "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, %x)) }") -> IRModule:
    return InferType()(relay.parse(text))


def codes(wrong: RelayError) -> list[str]:
    return [d.code for d in wrong.diagnostics]


@needs_shared
@pytest.mark.parametrize("path", golden("typed"), ids=lambda p: p.name.split(".")[0])
def test_simplify_and_fuse_do_what_tvm_does(path: Path) -> None:
    mod = InferType()(relay.parse(path.read_text()))
    for kind, run in (("simplified", SimplifyInference()), ("fused", FuseOps(3))):
        expected = path.with_name(path.name.replace("typed", kind))
        if not expected.exists():
            continue
        made = Sequential([SimplifyInference(), FuseOps(3)])(mod) if kind == "fused" else run(mod)
        theirs = InferType()(relay.parse(expected.read_text()))
        assert_structural_equal(InferType()(made), theirs)


def test_a_pass_is_told_by_its_info() -> None:
    assert FuseOps().info.name == "FuseOps" and FuseOps().info.opt_level == 0
    assert "FuseOps" in repr(FuseOps()) and list(SimplifyInference().info.required) == ["InferType"]


def test_a_sequence_runs_what_its_context_enables() -> None:
    ran: list[str] = []

    def step(name: str, level: int) -> object:
        def body(mod: IRModule, ctx: PassContext) -> IRModule:
            ran.append(name)
            return mod

        return module_pass(body, opt_level=level, name=name)

    steps = Sequential([step("a", 0), step("b", 2), step("c", 3), step("d", 1)])
    steps(program())
    assert ran == ["a", "b", "d"]
    ran.clear()
    with PassContext(opt_level=0, required_pass=["c"], disabled_pass=["a"]):
        assert PassContext.current().opt_level == 0
        steps(program())
    assert ran == ["c"] and PassContext.current().opt_level == 2


def test_fusing_at_level_0_gives_every_operator_its_function() -> None:
    mod = program()
    calls = lambda m: sum(isinstance(n, Call) and isinstance(n.op, Function) for n in relay.ir.post_order(m["main"]))  # noqa: E731
    assert calls(FuseOps(0)(mod)) == 2 and calls(FuseOps(2)(mod)) == 1
    with PassContext(opt_level=0):
        assert calls(FuseOps()(mod)) == 2
    with PassContext(config={"relay.FuseOps.max_depth": 1}):
        assert calls(FuseOps()(mod)) == 2


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_fusing_keeps_the_meaning(seed: int) -> None:
    mod = Programs(seed).module()
    for level in (0, 2):
        keeps_meaning(Sequential([FuseOps(level)]), mod, seed)


def test_decorated_functions_and_classes_are_passes() -> None:
    @function_pass(opt_level=1)
    def wrap(func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return Function(func.params, op_call("negative", [func.body]), func.ret_type)

    @module_pass(opt_level=1, name="Named")
    class Twice:
        def __init__(self, times: int = 2) -> None:
            self.times = times

        def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
            for _ in range(self.times):
                mod = wrap(mod)
            return mod

    mod = program()
    new = Twice(3)(mod)
    assert Twice(3).times == 3 and Twice().info.name == "Named" and wrap.info.name == "wrap"
    assert relay.astext(new, show_types=False).count("negative") == 3
    assert "negative" not in relay.astext(mod)
    assert new["main"].checked_type == mod["main"].checked_type


def test_what_a_pass_does_to_its_module_does_not_reach_the_callers() -> None:
    @module_pass(opt_level=0)
    def spoil(mod: IRModule, ctx: PassContext) -> IRModule:
        mod["main"] = Function([], op_call("nothing", []))
        return mod

    mod = program()
    before = relay.astext(mod)
    with pytest.raises(RelayError):
        Sequential([spoil])(mod)
    assert relay.astext(mod) == before


def test_a_pass_that_raises_is_named_with_its_place() -> None:
    @function_pass(opt_level=0)
    def broken(func: Function, mod: IRModule, ctx: PassContext) -> Function:
        raise ValueError("no good")

    with pytest.raises(RelayError) as wrong:
        broken(program())
    said = str(wrong.value)
    assert codes(wrong.value) == ["R0502"] and "the pass broken raised ValueError: no good" in said
    assert 'raise ValueError("no good")' in said and "test_manager.py" in said


def test_a_pass_that_returns_nothing_is_told() -> None:
    @module_pass(opt_level=0)
    def nothing(mod: IRModule, ctx: PassContext) -> IRModule:
        return None  # type: ignore[return-value]

    @function_pass(opt_level=0)
    def no_function(func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return func.body  # type: ignore[return-value]

    for step in (nothing, no_function):
        with pytest.raises(RelayError) as wrong:
            step(program())
        assert codes(wrong.value) == ["R0503"]


def test_a_pass_that_makes_a_wrong_program_is_told() -> None:
    @function_pass(opt_level=0)
    def ill_typed(func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return Function(func.params, op_call("nn.dense", [func.body, func.body], units=1))

    with pytest.raises(RelayError) as wrong:
        ill_typed(program())
    assert wrong.value.diagnostics[0].code == "R0504" and len(wrong.value.diagnostics) > 1

    @module_pass(opt_level=0)
    def unbound(mod: IRModule, ctx: PassContext) -> IRModule:
        x = Var("y", TensorType((2, 3)))
        return mod.with_functions({gv: Function(f.params, x) for gv, f in mod.functions.items()})

    with PassContext(instruments=[Verify()]), pytest.raises(RelayError) as wrong:
        unbound(program())
    assert codes(wrong.value) == ["R0504", "R0312"]


def test_only_modules_and_passes_are_taken() -> None:
    with pytest.raises(RelayError):
        FuseOps()(program()["main"])  # type: ignore[arg-type]
    with pytest.raises(RelayError) as wrong:
        Sequential([FuseOps])(program())  # type: ignore[list-item]
    assert "call it: FuseOps()" in str(wrong.value)


def test_instruments_see_every_pass() -> None:
    seen: list[str] = []

    @pass_instrument
    class Watch:
        def enter_pass_ctx(self) -> None:
            seen.append("enter")

        def exit_pass_ctx(self) -> None:
            seen.append("exit")

        def should_run(self, mod: IRModule, info: object) -> bool:
            return info.name != "SimplifyInference"  # type: ignore[attr-defined]

        def run_before_pass(self, mod: IRModule, info: object) -> None:
            seen.append(info.name)  # type: ignore[attr-defined]

    timing = PassTimingInstrument()
    shown: list[str] = []
    prints = [PrintIRBefore(["FuseOps"], shown.append), PrintIRAfter(["InferType"], shown.append)]
    mod = program()
    with PassContext(instruments=[Watch(), timing, *prints, PrintChanged(write=shown.append)]):
        Sequential([InferType(), SimplifyInference(), FuseOps()])(mod)
        assert [n for n, _ in timing.times] == ["InferType", "FuseOps"] and "total" in timing.render()
    assert seen == ["enter", "InferType", "FuseOps", "exit"]
    assert [s.splitlines()[0] for s in shown] == [
        "// ---- after InferType",
        "// ---- InferType: nothing changed",
        "// ---- before FuseOps",
        "// ---- after FuseOps",
    ]


def test_configuration_is_checked() -> None:
    for config in ({"relay.FuseOps.max_dept": 3}, {"relay.FuseOps.max_depth": "3"}):
        with pytest.raises(RelayError) as wrong:
            PassContext(config=config)
        assert codes(wrong.value) == ["R0508"]
    PassContext(config={"tir.disable_vectorize": True, "relay.FuseOps.max_depth": 3})


def test_passes_are_read_from_text() -> None:
    found = parse_passes("InferType, FuseOps(fuse_opt_level=0),SimplifyInference(),")
    assert [p.info.name for p in found] == ["InferType", "FuseOps", "SimplifyInference"]
    assert structural_equal(Sequential(found)(program()), FuseOps(0)(program()))


@pytest.mark.parametrize(
    "text, code, column",
    [
        ("FuseOp", "R0505", 1),
        ("InferType,FuseOps(level=1)", "R0501", 11),
        ("FuseOps(x)", "R0507", 9),
        ("FuseOps(", "R0507", 8),
        ("", "R0507", None),
        ("1+2", "R0507", 1),
        ("FuseOps(1, 2)", "R0501", 1),
        ("FuseOps(**{})", "R0507", 1),
    ],
)
def test_wrong_lists_of_passes_are_told(text: str, code: str, column: int | None) -> None:
    with pytest.raises(RelayError) as wrong:
        parse_passes(text)
    assert codes(wrong.value) == [code]
    span = wrong.value.diagnostics[0].span
    assert (span.column if span is not None else None) == column


def test_passes_are_loaded_from_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from relaylang.transform import function_pass\n"
        "from relaylang.dataflow_pattern import DFPatternCallback, is_op, wildcard\n"
        "@function_pass(opt_level=0)\ndef Same(func, mod, ctx):\n    return func\n"
        "class NoRelu(DFPatternCallback):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.x = wildcard()\n"
        "        self.pattern = is_op('nn.relu')(self.x)\n"
        "    def callback(self, pre, post, node_map):\n"
        "        return node_map[self.x][0]\n"
    )
    assert sorted(load_file(str(file))) == ["NoRelu", "Same"]
    for text in ("def f(:", "1/0", "x = 1"):
        file.write_text(text)
        with pytest.raises(RelayError) as wrong:
            load_file(str(file))
        assert codes(wrong.value)[0] in ("R0502", "R0512")
    with pytest.raises(RelayError):
        load_file(str(tmp_path / "absent.py"))


def test_a_pass_that_changes_nothing_gives_the_module_itself() -> None:
    x = relay.var("x", shape=(2,))
    one, two = IRModule.from_expr(x), IRModule.from_expr(relay.log(x))
    assert module_pass(lambda mod, ctx: two, opt_level=1)(one).same_as(two)
    assert module_pass(lambda mod, ctx: mod, opt_level=1)(one).same_as(one)
