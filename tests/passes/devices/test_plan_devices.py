"""PlanDevices: where values lie, which are copied, and which cannot be."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, IRModule, TensorType, Var, post_order, rewrite, structural_equal
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.devices.virtual_device import DEVICE_TYPES, UNKNOWN, VirtualDevice
from relaylang.testing.generators.programs import Programs
from relaylang.transform import InferType, PassContext, PlanDevices, ToANormalForm, Verify, make_compilation_config
from tests.growth import assert_linear, within
from tests.passes.meaning import keeps_meaning

HEAD = "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32])"
NAMES = {str(number): name for name, number in DEVICE_TYPES.items()}


def planned(text: str, fallback: str = "cuda", targets: Any = ("llvm", "cuda")) -> IRModule:
    """The planned module: where nothing else is said, on CUDA. A second run changes nothing, nor does its text."""
    with PassContext(config={"relay.fallback_device_type": DEVICE_TYPES[fallback]}):
        run = PlanDevices(make_compilation_config(PassContext.current(), targets))
    made = InferType()(run(InferType()(relay.parse(text))))
    assert structural_equal(InferType()(run(made)), made)
    assert structural_equal(InferType()(relay.parse(relay.astext(made))), made)
    return made


def shown(mod: IRModule) -> list[str]:
    """The lines of @main with the names of devices, without the attributes that say the same everywhere."""
    text, _, section = relay.astext(mod, show_types=False).partition("#[metadata]")
    nodes = json.loads(section)["nodes"]
    root = nodes[nodes[1]["data"][nodes[1]["keys"].index("VirtualDevice")]] if nodes[1].get("keys") else nodes[0]
    devices = [nodes[n]["attrs"] for n in root["data"]]

    def name(found: re.Match[str]) -> str:
        node = devices[int(found[1])]
        scope = nodes[int(node["memory_scope"])].get("repr_str", "")
        return NAMES[node["device_type_int"]] + (f"/{scope}" if scope else "")

    text = re.sub(r"meta\[VirtualDevice\]\[(\d+)\]", name, text)
    text = text.replace(", constrain_result=True", "!").replace("virtual_device=", "").replace("src_", "").replace("dst_", "")
    lines = [line.strip().rstrip(";") for line in re.sub(r": Tensor\[\(2\), float32\]", "", text).splitlines()]
    return [line for line in lines if line and not line.startswith(("#[", "}"))]


@pytest.mark.parametrize(
    "body, lines",
    [
        # nothing is said: all is on the default
        ("add(%x, %y)", ["def @main(%x {cuda}, %y {cuda}, cuda) {", "add(%x, %y)"]),
        # what an operator takes is where its result is, and the copy is where the program allows it
        (
            '%0 = exp(%x); add(on_device(%0, virtual_device="cpu"), %y)',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "%0 = exp(%x)",
                "%1 = on_device(%0, cpu!)",
                "%2 = device_copy(%1, cpu, cuda)",
                "add(%2, %y)",
            ],
        ),
        # a copy that is written stays, one that goes nowhere does not
        (
            '%0 = device_copy(exp(%x), src_virtual_device="cpu", dst_virtual_device="cuda"); '
            'add(%0, device_copy(%y, src_virtual_device="cuda", dst_virtual_device="cuda"))',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "%0 = exp(%x)",
                "%1 = on_device(%0, cpu!)",
                "%2 = device_copy(%1, cpu, cuda)",
                "add(%2, %y)",
            ],
        ),
        # variables are not annotated where they are used
        (
            'let %a = exp(%x); add(on_device(%a, virtual_device="cpu"), %y)',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "%0 = exp(%x)",
                "let %a = on_device(%0, cpu!)",
                "%1 = device_copy(%a, cpu, cuda)",
                "add(%1, %y)",
            ],
        ),
        # at the top of a function and behind a let an annotation holds outside, too
        ('on_device(add(%x, %y), virtual_device="cpu")', ["def @main(%x {cpu}, %y {cpu}, cpu) {", "add(%x, %y)"]),
        (
            'let %a = on_device(exp(%x), virtual_device="cpu"); %a',
            ["def @main(%x {cpu}, %y {cpu}, cpu) {", "%0 = exp(%x)", "let %a = on_device(%0, cpu!)", "%a"],
        ),
        # a field is taken before it is copied
        (
            '%0 = split(exp(%x), indices_or_sections=2); %1 = on_device(%0, virtual_device="cpu"); add(%1.0, %y)',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "%0 = exp(%x)",
                "%1 = split(%0, indices_or_sections=2)",
                "%2 = %1.0",
                "%3 = on_device(%2, cpu!)",
                "%4 = device_copy(%3, cpu, cuda)",
                "add(%4, %y)",
            ],
        ),
        # parameters of functions have devices of their own, which all calls keep to
        (
            'let %f = fn(%a) { on_device(exp(%a), virtual_device="cpu") }; add(on_device(%f(%x), virtual_device="cpu"), %y)',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "let %f = fn (%a {cpu}, cpu) {",
                "exp(%a)",
                "%0 = %f(%x)",
                "%1 = on_device(%0, cpu!)",
                "%2 = device_copy(%1, cpu, cuda)",
                "add(%2, %y)",
            ],
        ),
        # the same value for operators on two devices
        (
            'add(on_device(exp(%x), virtual_device="cpu"), on_device(tanh(%x), virtual_device="cuda"))',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "%0 = exp(%x)",
                "%1 = on_device(%0, cpu!)",
                "%2 = device_copy(%x, cpu, cuda)",
                "%3 = device_copy(%1, cpu, cuda)",
                "%4 = tanh(%2)",
                "add(%3, %4)",
            ],
        ),
        (
            'let %a = on_device(exp(%x), virtual_device="cpu"); on_device(add(%a, %y), virtual_device="cuda")',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "%0 = exp(%x)",
                "let %a = on_device(%0, cpu!)",
                "%1 = device_copy(%a, cpu, cuda)",
                "add(%1, %y)",
            ],
        ),
        # the shape of a tensor is with the host, wherever the tensor is
        (
            'vm.shape_of(on_device(%x, virtual_device="cuda", constrain_result=True), dtype="int64")',
            ["def @main(%x {cuda}, %y {cpu}, cpu) {", 'vm.shape_of(%x, dtype="int64")'],
        ),
        # one device for the parts of a branch and for what a reference holds
        (
            'if (any(cast(on_device(%x, virtual_device="cpu"), dtype="bool"))) { on_device(%x, virtual_device="cpu") } else { %y }',
            [
                "def @main(%x {cpu}, %y {cuda}, cuda) {",
                "%0 = device_copy(%x, cpu, cuda)",
                '%1 = cast(%0, dtype="bool")',
                "%2 = any(%1)",
                "if (%2) {",
                "device_copy(%x, cpu, cuda)",
                "%y",
            ],
        ),
        (
            'let %r = ref(%x); ref_write(%r, on_device(%y, virtual_device="cpu")); ref_read(%r)',
            [
                "def @main(%x {cuda}, %y {cpu}, cuda) {",
                "%0 = ref(%x)",
                "let %r = on_device(%0, cuda!)",
                "%1 = device_copy(%y, cpu, cuda)",
                "%2 = ref_write(%r, %1)",
                "let %_ = on_device(%2, cuda!)",
                "ref_read(%r)",
            ],
        ),
    ],
)
def test_where_values_lie(body: str, lines: list[str]) -> None:
    found = shown(planned(f"{HEAD} {{ {body} }}"))
    assert [line for line in found if line != "} else {"] == lines


def test_what_a_planned_program_computes() -> None:
    body = 'let %a = on_device(exp(%x), virtual_device="cpu"); add(on_device(add(%a, %y), virtual_device="cuda"), %x)'
    x, y = np.array([1, 2], "float32"), np.array([3, 4], "float32")
    text = f"{HEAD} {{ {body} }}"
    assert (evaluate(planned(text), x, y) == evaluate(InferType()(relay.parse(text)), x, y)).all()


def test_functions_of_functions_and_of_the_module() -> None:
    text = f"""
        def @twice(%f: fn(Tensor[(2), float32]) -> Tensor[(2), float32], %v: Tensor[(2), float32]) {{ %f(%f(%v)) }}
        {HEAD} {{
          let %g = fn(%a: Tensor[(2), float32]) -> Tensor[(2), float32] {{
            exp(on_device(%a, virtual_device="cpu", constrain_result=True))
          }};
          @twice(%g, %x)
        }}"""
    made = planned(text)
    for func in (made["main"], made["twice"]):
        assert str(func.attrs["virtual_device"]) == "cpu"
    assert [str(p.virtual_device) for p in made["twice"].params] == ["cpu", "cpu"]


def test_a_function_in_a_tuple_is_where_the_tuple_is() -> None:
    body = 'let %f = fn(%a: Tensor[(2), float32]) { add(%a, on_device(%y, virtual_device="cpu")) }; let %t = (%f, %x); %t.0(%t.1)'
    made = planned(f"{HEAD} {{ {body} }}", fallback="cuda")
    assert {str(p.virtual_device) for p in made["main"].params} == {"cpu", "cuda"}
    assert {str(n.attrs["virtual_device"]) for n in post_order(made["main"]) if isinstance(n, relay.Function)} == {"cuda"}


def test_memories_flow_and_are_copied_between() -> None:
    near, far = (VirtualDevice("cpu", memory_scope=m) for m in ("near", "far"))
    ty = TensorType((2,))
    v, x, y = Var("v", ty, virtual_device=near), Var("x", ty, virtual_device=VirtualDevice("cpu")), Var("y", ty, virtual_device=far)
    mod = IRModule.from_expr(relay.Function([v], v, attrs={"virtual_device": near}))
    mod = IRModule({"g": mod["main"]})
    free = {"device": VirtualDevice("cpu"), "constrain_body": False, "constrain_result": False}
    calls = [Call(mod.get_global_var("g"), [relay.op.annotation.on_device(p, **free)]) for p in (x, y)]
    mod["main"] = relay.Function([x, y], relay.add(*calls))
    made = shown(InferType()(PlanDevices(["llvm"])(InferType()(mod))))
    assert "def @main(%x {cpu/near}, %y {cpu/far}, cpu/near) {" in made and "%0 = device_copy(%y, cpu/far, cpu/near)" in made


def test_kernels_are_not_looked_into() -> None:
    body = '%0 = fn(%a: Tensor[(2), float32], Primitive=1) { add(on_device(%a, virtual_device="cpu"), %a) }; %0(%x)'
    made = planned(f"{HEAD} {{ {body} }}")
    assert str(made["main"].attrs["virtual_device"]) == "cuda" and 'virtual_device="cpu"' in relay.astext(made)


@pytest.mark.parametrize("seed", range(8))
def test_meaning(seed: int) -> None:
    """Programs of all kinds of nodes mean what they did; results of operators lie here and there."""
    rng = np.random.default_rng(seed)

    def somewhere(old: Expr, new: Expr) -> Expr:
        if not (isinstance(old, Call) and isinstance(old.op, Op) and rng.random() < 0.1):
            return new
        return relay.op.annotation.on_device(new, ["cpu", "cuda"][rng.integers(2)])

    def scattered(mod: IRModule) -> IRModule:
        return mod.with_functions({gv: rewrite(func, somewhere) for gv, func in mod.functions.items()})  # type: ignore[misc]

    def plan(mod: IRModule) -> IRModule:
        run = PlanDevices(["llvm", "cuda"])
        try:
            made = InferType()(run(InferType()(scattered(mod))))
        except RelayError as wrong:  # a value of a let or a tuple may be wanted on both
            assert {d.code for d in wrong.diagnostics} == {"R0528"}
            made = InferType()(run(mod))
        assert structural_equal(InferType()(run(made)), made)
        return made

    with PassContext(instruments=[Verify()]):
        keeps_meaning(plan, Programs(seed).module(), seed)


def test_bindings_say_where_they_are() -> None:
    """A-normal form binds what an `on_device` holds on its device, and not the `on_device` itself."""
    body = '%0 = multiply(exp(%x), %x); add(on_device(%0, virtual_device="cpu"), tanh(%y))'
    mod = planned(f"{HEAD} {{ {body} }}")
    made = InferType()(ToANormalForm()(mod))
    assert [re.sub(r"^let %\w+ = ", "", line) for line in shown(made) if line.startswith("let")] == [
        "on_device(%0, cpu!)",
        "on_device(%1, cpu!)",
        "on_device(%2, cuda!)",
        "on_device(%3, cuda!)",
        "on_device(%4, cuda!)",
    ]
    assert structural_equal(InferType()(ToANormalForm()(made)), made)
    x, y = np.array([1, 2], "float32"), np.array([3, 4], "float32")
    assert (evaluate(made, x, y) == evaluate(mod, x, y)).all()
    free = 'def @main(%x: Tensor[(2), float32]) { add(on_device(exp(%x), virtual_device="cpu"), %x) }'
    assert relay.astext(ToANormalForm()(InferType()(relay.parse(free)))).count("on_device") == 1


# ---- what cannot be


@pytest.mark.parametrize(
    "body, code, says",
    [
        (
            'device_copy(device_copy(%x, src_virtual_device="cpu", dst_virtual_device="cuda"), src_virtual_device="cpu", '
            'dst_virtual_device="cuda")',
            "R0528",
            "device_copy gives a value on cuda, and one is wanted on cpu",
        ),
        ('add(%x, on_device(%y, virtual_device="opencl"))', "R0529", "there is no target for opencl"),
        ('add(%x, on_device(%y, virtual_device="gpuu"))', "R0529", "there is no device gpuu"),
    ],
)
def test_wrong_devices(body: str, code: str, says: str) -> None:
    with pytest.raises(RelayError) as wrong:
        planned(f"{HEAD} {{ {body} }}")
    said = wrong.value.diagnostics[0]
    assert said.code == code and said.title == says and said.span is not None


@pytest.mark.parametrize(
    "targets, says",
    [
        ([], "at least one target is needed"),
        (["llvm", "llvm -mcpu=x"], "the target llvm is given twice"),
        (["lvm"], "there is no device lvm"),
        ([""], "'' is no target"),
    ],
)
def test_wrong_targets(targets: Any, says: str) -> None:
    with pytest.raises(RelayError) as wrong:
        PlanDevices(targets)(relay.parse(f"{HEAD} {{ %x }}"))
    assert [d.title for d in wrong.value.diagnostics][-1] == says or says in str(wrong.value)


# ---- devices and configurations


def test_devices_join() -> None:
    cpu, cuda = VirtualDevice("cpu"), VirtualDevice("cuda(1)")
    assert cuda.virtual_device_id == 1 and cpu.join(cuda) is None and cpu.join(UNKNOWN) is cpu and UNKNOWN.join(cpu) is cpu
    near = VirtualDevice(memory_scope="near")
    assert cpu.join(near) == VirtualDevice("cpu", memory_scope="near")
    assert VirtualDevice("cpu", memory_scope="far").join(near) is None
    assert VirtualDevice("cpu", "llvm -mcpu=a").join(VirtualDevice("cpu", "llvm -mcpu=b")) is None
    assert cpu.filled(VirtualDevice("cuda", "cuda")).target is None


def test_the_default_device() -> None:
    def default(targets: Any, **config: int) -> str:
        with PassContext(config={f"relay.{k}": v for k, v in config.items()}) as ctx:
            return str(make_compilation_config(ctx, targets).default)

    assert default("cuda") == "cuda" and default(["cuda", "llvm"]) == "cpu" and default({1: "llvm", 2: "cuda"}) == "cpu"
    assert default(["llvm", "cuda"], fallback_device_type=2) == "cuda"


@pytest.mark.sweep
def test_planning_is_linear() -> None:
    """A chain in which the devices take turns."""

    def prepare(n: int) -> Any:
        x = Var("x", TensorType((2,)))
        node: Any = x
        for i in range(n):
            node = relay.op.annotation.on_device(op_call("exp", [node]), VirtualDevice("cpu" if i % 2 else "cuda"))
        mod = InferType()(IRModule.from_expr(relay.Function([x], node)))

        def run() -> None:
            made = PlanDevices(["llvm", "cuda"])(mod)
            assert sum(isinstance(n, Call) and n.op.name == "device_copy" for n in post_order(made["main"])) == n - 1

        return run

    assert_linear(prepare, small=100)
    prepare(1_500)()  # deeper than Python recurses


def test_types_of_functions_are_not_written_out() -> None:
    """Each function's type has that of the one before it twice, and is the same object."""
    lines = ["let %f0 = fn(%a: Tensor[(2), float32]) { %a };"]
    for i in range(30):
        lines.append(f"let %f{i + 1} = fn(%g: fn(_) -> Tensor[(2), float32]) {{ let %u{i} = %g(%f{i}); %f{i} }};")
    mod = InferType()(relay.parse(f'{HEAD} {{ {" ".join(lines)} add(%x, on_device(%y, virtual_device="cpu")) }}'))
    made = within(300_000, lambda: PlanDevices(["llvm", "cuda"])(mod))
    assert isinstance(made, IRModule)
