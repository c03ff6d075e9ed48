"""Programs with awkward results, names, branches and loops: every tool computes what the interpreter computes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.diagnostics import RelayError
from relaylang.export import export_onnx, export_relax, export_stablehlo
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from relaylang.ir import IRModule
from relaylang.stdlib.library import read
from relaylang.typing import infer
from tests.export.peers import Iree, Relax, onnx_outputs
from tests.export.programs import interpreted
from tests.frontends.onnx.models import model, node

X = "%x: Tensor[(3), float32]"
T = "Tensor[(3), float32]"
#: Without loops: these go into all three formats.
PLAIN = {
    "a branch without values": f"def @main({X}, %c: bool) {{ let %u = if (%c) {{ () }} else {{ () }}; %x }}",
    "branches with tuples": f"def @main({X}, %c: bool) {{ if (%c) {{ (%x, (%x, 2f)) }} else {{ (nn.relu(%x), (%x, 3f)) }} }}",
    "results that are used": f"def @main({X}) {{ let %a = exp(%x); let %b = %a + %x; (%b, %a, %x, %b) }}",
    "constants only": "def @main() { let %c = 3f; (%c, True, (%c,)) }",
    "unused parameters": f"def @main({X}, %u: Tensor[(2), int32]) {{ (%x + 1f,) }}",
    "words of Python": f"def @main(%float: {T}, %lambda: {T}, %R: {T}, %_: {T}) {{ (%float * %lambda, (%R / 2f + %_)) }}",
}
#: A function that calls itself last is a loop.
LOOPS = {
    "let before the call": "if (%i < 4) { let %y = %x * 2f; @f(%i + 1, %y) } else { %x }",
    "a branch before the call": "if (%i < 4) { let %y = if (%i == 2) { %x * 3f } else { %x }; @f(%i + 1, %y) } else { %x }",
    "the other branch": "if (%i >= 4) { let %y = %x + 1f; %y } else { let %z = @f(%i + 1, %x * 2f); %z }",
}
#: These are no loops of this kind.
OTHERS = {
    "a call in an operand": "if (%i < 3) { @f(%i + 1, @f(%i + 1, %x * 2f)) } else { %x }",
    "calls in both branches": "if (%i < 3) { @f(%i + 1, %x) } else { if (%i < 6) { @f(%i + 1, %x + 1f) } else { %x } }",
    "a call before": "let %y = if (%i < 2) { @f(%i + 1, %x) } else { %x }; if (%i < 3) { @f(%i + 1, %y) } else { %y }",
}


def program(text: str) -> IRModule:
    if "@main" not in text:
        text = f"def @f(%i: int32, {X}) -> {T} {{ {text} }}\ndef @main({X}) {{ @f(0, %x) }}"
    module = read(f'#[version = "0.0.5"]\n{text}', "program").module
    assert module is not None and not [d for d in infer(module) if d.severity == "error"]
    return module


def arguments(module: IRModule) -> list[Any]:
    rng = np.random.default_rng(0)
    function: Any = module["main"]
    return [np.asarray(rng.standard_normal(p.checked_type.shape) * 3).astype(p.checked_type.dtype) for p in function.params]


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for f, w in zip(found, wanted, strict=True):
        assert f.dtype == w.dtype
        np.testing.assert_allclose(f, w, 1e-5, 1e-6)


@pytest.mark.parametrize("text", [*PLAIN.values(), *LOOPS.values()], ids=[*PLAIN, *LOOPS])
def test_onnx_and_back(text: str) -> None:
    module = program(text)
    inputs = arguments(module)
    wanted = interpreted(module, inputs)
    made = export_onnx(module)
    same(onnx_outputs(made, inputs), wanted)
    again = import_bytes(made.SerializeToString(), "again.onnx", Options())
    assert again is not None
    same(interpreted(again.module, inputs), wanted)


def test_stablehlo() -> None:
    modules = [program(text) for text in (*PLAIN.values(), *LOOPS.values())]
    iree = Iree([export_stablehlo(m) for m in modules])
    for number, module in enumerate(modules):
        inputs = arguments(module)
        same(iree.run(number, inputs), interpreted(module, inputs))


def test_relax() -> None:
    modules = [program(text) for text in PLAIN.values()]
    made = [export_relax(m) for m in modules]
    relax = Relax([text for text, _ in made])
    for number, module in enumerate(modules):
        inputs = arguments(module)
        same(relax.run(number, [*inputs, *made[number][1].values()]), interpreted(module, inputs))


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_recursion_is_refused(text: str) -> None:
    module = program(text)
    for export in (export_onnx, export_stablehlo, export_relax):
        with pytest.raises(RelayError, match="recursive, and no loop"):
            export(module)


def test_functions_that_call_each_other_are_refused() -> None:
    text = """def @e(%i: int32) -> bool { if (%i == 0) { True } else { @o(%i - 1) } }
def @o(%i: int32) -> bool { if (%i == 0) { False } else { @e(%i - 1) } }
def @main(%x: int32) { @e(%x) }"""
    with pytest.raises(RelayError, match="recursive, and no loop"):
        export_onnx(program(text))


def test_a_model_without_results_is_refused() -> None:
    with pytest.raises(RelayError, match="has no results"):
        export_onnx(program(f"def @main({X}) {{ () }}"))


def test_names_of_results() -> None:
    module = program(f"def @main({X}) {{ let %a = exp(%x); let %b = %a + %x; (%b, %a) }}")
    assert [o.name for o in export_onnx(module).graph.output] == ["b", "a"]
    made = export_onnx(module, outputs=["first", "second"])
    assert [o.name for o in made.graph.output] == ["first", "second"]
    same(onnx_outputs(made, arguments(module)), interpreted(module, arguments(module)))


def test_names_of_a_network() -> None:
    names = ["é", "日本語", "²", "ﬁ", "fi", "a b", "a.b", "a/b", "float", "if", "0", "x" * 300, "%0", "a::0", "_", "#"]
    layers = [node("Relu" if i % 2 else "Neg", [a], [b], name=f"layer {b}") for i, (a, b) in enumerate(pairwise(names))]
    made = import_bytes(model(layers, {names[0]: (3,)}, names[1:]), "names.onnx", Options())
    assert made is not None
    inputs = arguments(made.module)
    wanted = interpreted(made.module, inputs)
    whole = export_onnx(made.module)
    assert [i.name for i in whole.graph.input] == ["é"] and whole.graph.output[0].name == "日本語"
    same(onnx_outputs(whole, inputs), wanted)
    same(Iree([export_stablehlo(made.module)]).run(0, inputs), wanted)
    same(Relax([export_relax(made.module)[0]]).run(0, inputs), wanted)


def test_layers_are_named() -> None:
    made = import_bytes(model([node("NonZero", ["x"], ["y"], name="block/places")], {"x": (2, 3)}), "net.onnx", Options())
    assert made is not None
    with pytest.raises(RelayError, match="first in block/places"):
        export_stablehlo(made.module)


def test_an_open_shape_is_said_once() -> None:
    made = import_bytes(model([node("Relu", ["x"], ["y"])], {"x": ("n", 3)}), "net.onnx", Options())
    assert made is not None
    for export in (export_stablehlo, export_relax):
        with pytest.raises(RelayError, match="needs known shapes; the parameter %x") as wrong:
            export(made.module)
        assert "--shape x=1x3x224x224" in str(wrong.value)


def test_the_entry_may_have_a_word_of_python() -> None:
    module = program(f"def @class({X}) {{ %x + 1f }}\ndef @main({X}) {{ %x }}")
    assert "    def class_1(" in export_relax(module, "class")[0]
