"""Programs as ONNX models, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.export import export_onnx
from relaylang.export.onnx.table import RULES
from relaylang.frontends.onnx import import_onnx
from tests.export.peers import onnx_outputs
from tests.export.programs import cases, difference, interpreted
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import theirs

#: Cases in which onnxruntime gives another value, or has no kernel for it.
APART = {
    "cast": "a number that is not a number becomes another truth value",
    "sign": "the sign of what is not a number",
    "nn.relu": "relu of what is not a number",
    "qnn.subtract": "a zero point that arrives when the program runs, and is no number of the operand's type",
    "image.resize1d": "onnxruntime has cubic interpolation of two axes only",
    "image.resize3d": "onnxruntime has cubic interpolation of two axes only",
}


def module(text: str) -> relay.IRModule:
    return relay.transform.InferType()(relay.parse(text))


def test_every_operator() -> None:
    failed, count = {}, 0
    for case in cases(RULES):
        try:
            model = export_onnx(case.module)
        except RelayError as refused:
            assert [d.code for d in refused.diagnostics] == ["R0806"]
            continue
        count += 1
        try:
            found = difference(case, onnx_outputs(model, case.inputs))
        except Exception as wrong:
            found = str(wrong)[-300:]
        if found and case.name not in APART:
            failed[case.says] = found
    assert failed == {}
    assert count > 1400


def test_names_are_those_of_the_program() -> None:
    model = export_onnx(module("def @main(%image: Tensor[(2, 3), float32]) {\n  let %a = nn.relu(%image);\n  exp(%a)\n}"))
    assert [i.name for i in model.graph.input] == ["image"]
    assert [n.op_type for n in model.graph.node] == ["Relu", "Exp"]
    assert model.graph.node[0].output[0] == "a"


LOOP = """
def @main(%x: Tensor[(2), float32], %n: int32) {
  let %loop = fn (%i: int32, %v: Tensor[(2), float32]) -> (int32, Tensor[(2), float32]) {
    if (less(%i, %n)) { %loop(add(%i, 1), add(%v, %x)) } else { (%i, %v) }
  };
  %loop(0, %x).1
}
"""
BRANCH = """
def @main(%x: Tensor[(2), float32], %c: bool) {
  %0 = exp(%x);
  %1 = if (%c) { (add(%0, %x), %x) } else { (%x, negative(%0)) };
  (%1.0, %1.1, %0)
}
"""
CALLS = """
def @twice(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { add(%x, %x) }
def @main(%x: Tensor[(2), float32]) {
  %0 = fn (%a: Tensor[(2), float32], Primitive=1) { nn.relu(%a) };
  subtract(@twice(@twice(%x)), %0(%x))
}
"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_loops(n: int) -> None:
    mod = module(LOOP)
    inputs = [np.asarray([1.5, -2], np.float32), np.asarray(n, np.int32)]
    assert np.array_equal(onnx_outputs(export_onnx(mod), inputs)[0], interpreted(mod, inputs)[0])


@pytest.mark.parametrize("way", [True, False])
def test_branches(way: bool) -> None:
    mod = module(BRANCH)
    inputs = [np.asarray([1.5, -2], np.float32), np.asarray(way)]
    for found, wanted in zip(onnx_outputs(export_onnx(mod), inputs), interpreted(mod, inputs), strict=True):
        assert np.allclose(found, wanted, rtol=1e-6)


def test_functions_are_written_in_place() -> None:
    mod, inputs = module(CALLS), [np.asarray([1.5, -2], np.float32)]
    assert np.array_equal(onnx_outputs(export_onnx(mod), inputs)[0], interpreted(mod, inputs)[0])


def test_open_extents_stay_open() -> None:
    text = "def @main(%x: Tensor[(?, 4), float32]) { (nn.softmax(%x), reshape(%x, newshape=[-1, 2]), sum(%x, axis=[0])) }"
    mod = module(text)
    model = export_onnx(mod)
    for rows in (1, 3):
        inputs = [np.linspace(0, 1, rows * 4, dtype=np.float32).reshape(rows, 4)]
        for found, wanted in zip(onnx_outputs(model, inputs), interpreted(mod, inputs), strict=True):
            assert found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-6)


QUANTISED = """
def @main(%x: Tensor[(1, 4, 6, 6), int8], %w: Tensor[(3, 4, 3, 3), int8], %b: Tensor[(3), int32]) {
  %0 = qnn.conv2d(%x, %w, 3, 0, 0.02f, 0.05f, padding=[1, 1, 1, 1], channels=3, kernel_size=[3, 3], out_dtype="int32");
  %1 = nn.bias_add(%0, %b);
  %2 = qnn.requantize(%1, 0.001f, 0, 0.04f, -5, axis=1, out_dtype="int8");
  qnn.add(%2, %2, 0.04f, -5, 0.04f, -5, 0.1f, 2)
}
"""


def test_integers_become_qlinear_layers() -> None:
    mod = module(QUANTISED)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-128, 128, s).astype(d) for s, d in (((1, 4, 6, 6), "int8"), ((3, 4, 3, 3), "int8"), ((3,), "int32"))]
    model = export_onnx(mod)
    kinds = [n.op_type for n in model.graph.node]
    assert kinds == ["QLinearConv", "DequantizeLinear", "DequantizeLinear", "Add", "QuantizeLinear"]
    found, wanted = onnx_outputs(model, inputs)[0], interpreted(mod, inputs)[0]
    assert np.abs(found.astype(int) - wanted).max() <= 1


def test_there_and_back_again() -> None:
    """An exported model computes the same when it is imported again."""
    mod = module(QUANTISED)
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-128, 128, s).astype(d) for s, d in (((1, 4, 6, 6), "int8"), ((3, 4, 3, 3), "int8"), ((3,), "int32"))]
    again = import_onnx(export_onnx(mod))
    assert np.abs(interpreted(again.module, inputs)[0].astype(int) - interpreted(mod, inputs)[0]).max() <= 1
    loop = module(LOOP)
    inputs = [np.asarray([1.5, -2], np.float32), np.asarray(4, np.int32)]
    again = import_onnx(export_onnx(loop))
    assert np.array_equal(interpreted(again.module, inputs)[0], interpreted(loop, inputs)[0])


def test_what_is_missing_is_listed_whole() -> None:
    text = """
    def @main(%x: Tensor[(1, 8, 2, 2), uint8], %k: Tensor[(10), uint64]) {
      %0 = nn.bitpack(%x, bits=1, pack_axis=1, bit_axis=4, pack_type="uint8");
      (random.threefry_split(%k), random.threefry_split(%k), %0)
    }
    """
    with pytest.raises(RelayError) as raised:
        export_onnx(module(text))
    (said,) = raised.value.diagnostics
    assert said.code == "R0806" and said.title == "3 layers of 2 operators cannot be converted"
    assert said.notes[0].startswith("2 x random.threefry_split") and said.notes[1].startswith("1 x nn.bitpack")


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%n: int32) -> int32 { if (equal(%n, 0)) { 1 } else { multiply(%n, @main(subtract(%n, 1))) } }",
        "def @main(%x: float32) { let %r = ref(%x); ref_read(%r) }",
        "def @main(%f: fn (int32) -> int32) { %f(1) }",
    ],
)
def test_what_has_no_form(text: str) -> None:
    with pytest.raises(RelayError) as raised:
        export_onnx(module(text))
    assert [d.code for d in raised.value.diagnostics] == ["R0806"]


def test_long_programs() -> None:
    """A chain and a diamond of 2 ** 60 paths, in linear time and without recursion."""
    x = relay.var("x", shape=(2,), dtype="float32")
    chain = x
    for _ in range(20_000):
        chain = relay.nn.relu(chain)
    assert len(export_onnx(relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], chain)))).graph.node) == 20_000
    wide = x
    for _ in range(60):
        wide = relay.add(wide, wide)
    assert len(export_onnx(relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], wide)))).graph.node) == 60


def agrees(text: str, powers: bool = False) -> None:
    """The exported program gives in onnxruntime what the interpreter gives; of `powers` of 2, products are exact."""
    mod = module(f'#[version = "0.0.5"]\n{text}')
    rng = np.random.default_rng(0)
    shapes = [[int(n) for n in p.checked_type.shape] for p in mod["main"].params]
    drawn = [rng.choice([-2, -1, -0.5, 0.5, 1, 2], shape) if powers else rng.standard_normal(shape) * 3 for shape in shapes]
    inputs = [np.asarray(x).astype(p.checked_type.dtype) for x, p in zip(drawn, mod["main"].params, strict=True)]
    for found, wanted in zip(onnx_outputs(export_onnx(mod), inputs), interpreted(mod, inputs), strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), text
        np.testing.assert_allclose(found.astype("f8"), wanted.astype("f8"), 1e-5, 1e-5, err_msg=text)


def tensor(shape: tuple[int, ...], dtype: str) -> str:
    return f"Tensor[({', '.join(map(str, shape))}{',' * (len(shape) == 1)}), {dtype}]" if shape else dtype


REDUCTIONS = ("sum", "max", "min", "prod", "mean", "all", "any", "argmax", "argmin")


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.sweep)], ids=["few", "all"])
def test_reductions(operator: str, every: bool) -> None:
    """Every way to state the axes, along empty axes too. Without an axis, `exclude` says nothing."""
    dtypes = ("bool",) if operator in ("all", "any") else ("float32", "int32", "uint8", "float16", "uint64", "float64")
    for shape in ((), (3,), (2, 3), (2, 0), (2, 3, 2)):
        for axes in ("", "axis=[], ", "axis=[0], ", "axis=[-1], ", "axis=[0, 1], "):
            if len(shape) < axes.count("0") + axes.count("1"):
                continue
            if operator.startswith("arg") and (0 in shape or not shape):
                continue
            for exclude in (False, True):
                for keep in (False, True) if every else (exclude,):
                    for dtype in dtypes if every else dtypes[:1]:
                        attrs = f"{axes}exclude={exclude}, keepdims={keep}"
                        # onnxruntime multiplies float16 as float32, and rounds once
                        powers = operator == "prod" and dtype == "float16"
                        agrees(f"def @main(%x: {tensor(shape, dtype)}) {{ {operator}(%x, {attrs}) }}", powers)


def test_a_scalar_is_transposed() -> None:
    agrees("def @main(%x: float32) { transpose(%x, axes=[]) }")


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_one_hot_has_a_kernel(dtype: str) -> None:
    for shape in ((), (3,), (2, 3)):
        for of, on, off in (("float32", "2f", "-1f"), ("int32", "3", "1"), ("bool", "True", "False"), ("float64", "2f64", "1f64")):
            for axis in (-1, 0):
                agrees(f'def @main(%x: {tensor(shape, dtype)}) {{ one_hot(%x, {on}, {off}, depth=4, axis={axis}, dtype="{of}") }}')


@pytest.mark.parametrize("kinds", [("int16", "int16"), ("int16", "int8"), ("uint16", "int32"), ("int32", "uint8")])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_wide_integers(kinds: tuple[str, str], groups: int) -> None:
    """ONNX convolves bytes; the interpreter's sums wrap as those of bytes do."""
    text = f"""def @main(%x: {tensor((1, 2, 5, 4), kinds[0])}, %w: {tensor((4, 2 // groups, 3, 3), kinds[1])}) {{
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups={groups}, channels=4, kernel_size=[3, 3], out_dtype="int32")
}}"""
    mod = module(f'#[version = "0.0.5"]\n{text}')
    rng = np.random.default_rng(1)
    inputs = [
        rng.integers(np.iinfo(k).min, np.iinfo(k).max, [int(n) for n in p.checked_type.shape], k)
        for p, k in zip(mod["main"].params, kinds)
    ]
    assert np.array_equal(onnx_outputs(export_onnx(mod), inputs)[0], interpreted(mod, inputs)[0])


@pytest.mark.parametrize("signs", [False, True], ids=["positive", "signs"])
@pytest.mark.parametrize("given", [("m",), ("m", "i"), ("m", "i", "t")])
def test_non_max_suppression_stays_one_layer(given: tuple[str, ...], signs: bool) -> None:
    """Imported and exported again, with thresholds that are left out, and with scores below 0."""
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 5, (2, 9, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0.5, 3, (2, 9, 2))], -1).astype(np.float32)
    inputs = {"b": boxes, "s": (rng.standard_normal((2, 3, 9)) if signs else rng.uniform(0, 1, (2, 3, 9))).astype(np.float32)}
    every = {"m": np.array([4]), "i": np.array([0.4], np.float32), "t": np.array([-0.2 if signs else 0.2], np.float32)}
    weights = {name: every[name] for name in given}
    data = model([node("NonMaxSuppression", ["b", "s", *given])], {n: x.shape for n, x in inputs.items()}, weights=weights, opset=17)
    wanted = theirs(data, inputs)[0]
    imported = import_onnx(data)
    assert np.array_equal(interpreted(imported.module, list(inputs.values()))[0], wanted)
    again = export_onnx(imported.module)
    kinds = [n.op_type for n in again.graph.node]
    assert kinds.count("NonMaxSuppression") == 1 and "Slice" not in kinds and "Pad" not in kinds
    assert np.array_equal(theirs(again.SerializeToString(), inputs)[0], wanted)


#: Data, entries, and begin, end and strides as the program has them: whole axes, counts from the end, clamped bounds, fewer axes.
PLACES = {
    "a row of a cache": ((2, 128, 16), (2, 1, 16), [0, 7, 0], [2, 8, 16], [1, 1, 1]),
    "backwards": ((4, 5), (2, 5), [3, 4], [-4, -6], [-2, -1]),
    "beyond the end": ((4, 5), (2, 1), [2, -1], [9, 9], [1, 1]),
    "first axes": ((4, 5, 3), (2, 5, 3), [1], [4], [2]),
    "fewer strides": ((4, 5, 3), (2, 2, 2), [1, -2, 0], [3, 5, 2], [1]),
    "nothing": ((4, 5), (0, 5), [2, 0], [2, 5], [1, 1]),
    "everything": ((4, 5), (4, 5), [0, 0], [4, 5], [1, 1]),
}


@pytest.mark.parametrize("known", [False, True], ids=["strides at run time", "known strides"])
@pytest.mark.parametrize("case", PLACES)
def test_entries_replace_a_slice(case: str, known: bool) -> None:
    shape, entries, *bounds = PLACES[case]
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    new = np.random.default_rng(1).standard_normal(entries).astype(np.float32)
    x, v = relay.var("x", shape=shape), relay.var("v", shape=entries)
    begin, end, strides = (relay.var(name, shape=(len(row),), dtype="int32") for name, row in zip(("b", "e", "s"), bounds))
    steps = relay.const(np.asarray(bounds.pop(), np.int32)) if known else strides
    params = [x, v, begin, end, strides][: 2 + len(bounds)]
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, relay.strided_set(x, v, begin, end, steps))))
    inputs = [data, new, *(np.asarray(row, np.int32) for row in bounds)]
    (result,) = onnx_outputs(export_onnx(mod), inputs)
    np.testing.assert_array_equal(result, interpreted(mod, inputs)[0])
