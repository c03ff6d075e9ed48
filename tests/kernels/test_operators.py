"""Operators of users whose kernels are texts: types, numbers, compiled code, places of mistakes, exporters, TVM's names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.export import export_onnx, export_relax, export_stablehlo
from relaylang.ops.extensions import EXTENSIONS, Extension, find, register, register_text
from relaylang.ops.record import Floats, Ints, Op, attrs_class
from relaylang.ops.relations import broadcast, tensor_identity
from relaylang.plugins.files import load_file
from relaylang.tvm.op.registering import METHODS, register_compute
from relaylang.tvm.op.registering import register as begin
from relaylang.typing import check
from tests.cli.command import relay as call_relay
from tests.cli.command import relay_process
from tests.plugins.packages import install, undone
from tests.shared import ROOT

TEXT = Path(__file__).with_name("users.kernel")
RNG = np.random.default_rng(5)


@cache
def added() -> list[Extension]:
    """The operators of the file."""
    with undone():
        return [EXTENSIONS[op.name] for op in register_text(TEXT)]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    extensions = added()
    with undone():
        for extension in extensions:
            register(extension)
        yield


def whole(dtype: str, *shape: int) -> np.ndarray:
    return RNG.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype).reshape(shape)


def real(dtype: str, *shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 5).astype(np.dtype(dtype))


def _type(array: np.ndarray, open_: bool = False) -> str:
    shape = ["?" if open_ and n else str(e) for n, e in enumerate(array.shape)] or [""]
    return f"Tensor[({', '.join(shape)}), {array.dtype.name}]" if array.shape else f"Tensor[(), {array.dtype.name}]"


#: Calls of each operator with its arguments; `%0`, `%1` stand for them.
CALLS: list[tuple[str, list[np.ndarray]]] = [
    ("u.line(%0)", [real("float32", 2, 3)]),
    ("u.line(%0, factor=-0.3f, offset=-4)", [real("float64", 5)]),
    ("u.line(%0)", [real("float16", 4, 3)]),
    ("u.line(%0, factor=0.7f)", [real("bfloat16", 7)]),
    ("u.line(%0, factor=3f)", [whole("int8", 40)]),
    ("u.line(%0, factor=-3f, offset=7)", [whole("int64", 9)]),
    ("u.line(%0, factor=5f)", [whole("uint16", 2, 2, 2)]),
    ("u.line(%0)", [real("float32")]),
    ("u.row_sum(%0)", [real("float32", 3, 4, 17)]),
    ("u.row_sum(%0)", [real("float16", 3, 40)]),
    ("u.row_sum(%0)", [whole("int32", 6, 5)]),
    ("u.row_sum(%0)", [real("float64", 8)]),
    ("u.peak_along(%0)", [real("float32", 3, 4, 5)]),
    ("u.peak_along(%0, axis=0)", [whole("int16", 6, 4)]),
    ("u.peak_along(%0, axis=1)", [real("bfloat16", 2, 9, 3)]),
    ("u.take(%0, %1)", [real("float32", 6, 3), np.array([[0, 5], [-1, 6]], "int32")]),
    ("u.take(%0, %1)", [real("float16", 4, 2), np.array([3, 3, 9], "int64")]),
    ("u.add_at(%0, %1, %2)", [real("float32", 5), np.array([4, 4, 9, 0], "int32"), real("float32", 4)]),
    ("u.add_at(%0, %1, %2)", [real("float16", 5), np.array([1, 1, 1], "int32"), real("float16", 3)]),
    ("u.add_at(%0, %1, %2)", [whole("int8", 5), np.array([1, 1, 1], "int32"), whole("int8", 3)]),
    ("u.windows(%0, size=3, strides=[2, 1])", [real("float32", 2, 7, 6)]),
    ("u.windows(%0, padded=True)", [real("float64", 1, 3, 4)]),
    ("u.mix(%0, %1)", [real("float32", 3, 4), real("float32", 4)]),
    ("u.mix(%0, %1)", [real("float16", 3, 1), real("float16", 1, 4)]),
    ('u.mix(%0, %1, mode="max")', [real("bfloat16"), real("bfloat16", 5)]),
    ("u.mix(%0, %1)", [whole("int8", 33), whole("int8", 1)]),
    ("u.as_type(%0)", [real("float32", 5)]),
    ('u.as_type(%0, dtype="uint8")', [np.abs(real("float32", 5))]),
    ('u.as_type(%0, dtype="float16")', [real("float32", 5)]),
    ('u.as_type(%0, dtype="bool")', [np.array([0, -0.0, 2], "float32")]),
    ("u.bits(%0, %1)", [whole("int32", 30), np.arange(-15, 15, dtype="int32")]),
    ("u.bits(%0, %1)", [whole("uint8", 30), np.arange(30, dtype="uint8")]),
    ("u.bits(%0, %1)", [whole("int64", 9), np.arange(-4, 5, dtype="int64")]),
]  # fmt: skip


def program(open_: bool = False) -> tuple[str, dict[str, np.ndarray]]:
    """One program with all calls, and its inputs."""
    params, calls, inputs = [], [], {}
    for n, (call, arrays) in enumerate(CALLS):
        for k, array in enumerate(arrays):
            params.append(f"%x{n}_{k}: {_type(array, open_)}")
            inputs[f"x{n}_{k}"] = array
            call = call.replace(f"%{k}", f"%x{n}_{k}")
        calls.append(call)
    return f'#[version = "0.0.5"]\ndef @main({", ".join(params)}) {{\n  ({", ".join(calls)},)\n}}\n', inputs


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [part for field in value for part in flat(field)]
    return [np.asarray(value)]


def differences(one: Any, two: Any) -> list[str]:
    ours, theirs = flat(one), flat(two)
    assert len(ours) == len(theirs) > len(CALLS)
    wrong = []
    for n, (a, b) in enumerate(zip(ours, theirs)):
        if (a.dtype, a.shape, a.tobytes()) != (b.dtype, b.shape, b.tobytes()):
            wrong.append(f"{n}: {a.dtype}{a.shape} {a.ravel()[:5]} {b.dtype}{b.shape} {b.ravel()[:5]}")
    return wrong


def test_compiled_code_gives_the_interpreters_bits() -> None:
    text, inputs = program()
    mod = relay.parse(text)
    assert differences(relay.evaluate(mod, **inputs), relay.build(mod).run(**inputs)) == []


def test_open_extents_on_the_vm() -> None:
    text, inputs = program(open_=True)
    mod = relay.parse(text)
    found = relay.create_executor("vm", mod).evaluate()(**inputs)
    assert differences(relay.evaluate(mod, **inputs), found) == []


def test_numbers() -> None:
    """The interpreter's results beside those of numpy."""
    data = real("float32", 3, 4, 5)

    def value(call: str, *arrays: np.ndarray) -> Any:
        params = ", ".join(f"%{n}: {_type(a)}" for n, a in zip("abc", arrays))
        return relay.evaluate(relay.parse(f"def @main({params}) {{ {call} }}"), *arrays)

    assert np.array_equal(value("u.line(%a, factor=3f)", data), data * np.float32(3) + np.float32(1))
    best, place = value("u.peak_along(%a, axis=-2)", data)
    assert np.array_equal(best, data.max(1)) and np.array_equal(place, data.argmax(1))
    at, more = np.array([4, 0, 4], "int32"), np.array([1, 2, 3], "float32")
    expected = np.zeros(5, "float32")
    np.add.at(expected, at, more)
    assert np.array_equal(value("u.add_at(%a, %b, %c)", np.zeros(5, "float32"), at, more), expected)
    wide = np.lib.stride_tricks.sliding_window_view(data[:, :, :4].astype("float64"), (2, 2), (1, 2))
    assert np.array_equal(value("u.windows(%a)", np.ascontiguousarray(data[:, :, :4])), wide.mean((-1, -2)).astype("float32"))
    assert value("u.as_type(%a)", np.array([2.7, -2.7], "float32")).tolist() == [2, -2]


def message(function: Any, *args: Any, **named: Any) -> Any:
    with pytest.raises(RelayError) as wrong:
        function(*args, **named)
    return wrong.value.diagnostics[0]


_LOOP = "let x: T = data[0]\n  for n in 0 .. N\n    y[n] = x"
#: Wrong texts: what replaces what in `u.take`, the message, and the words of the text that it points at.
WRONG: list[tuple[str, str, str, str]] = [
    ("operator u.wrong", "kernel wrong", "begins with `operator NAME`", "kernel wrong"),
    ("type T: float", "type T: flaot", "no element type is called flaot", "flaot"),
    ("attr axis: int", "attr axis: integer", "no attribute is of the kind integer", "integer"),
    ("= -1", "= 0.5", "no default of the kind int", "0.5"),
    ("in data: T", "in data: U", "no element type is called U", "U"),
    ("out y: T[N]", "out y: T[M]", "M is an extent of no argument", "M"),
    ("out y: T[N]", "out y: T[exp(N)]", "extents are computed with", "exp(N)"),
    ("in data: T[N]", "in data: T[A..., B...]", "one group of extents", "data: T[A..., B...]"),
    ("in data: T[N]", "in axis: T[N]", "axis is the name of two things", "axis"),
    ("y[n] = x", "y[n] = z", "undefined: z", "z"),
    ("y[n] = x", "data[n] = x", "data is read, and cannot be written", "data[n] = x"),
    ("y[n] = x", "y[n] = x +", "a value is missing", ""),
    ("y[n] = x", "y[n] = expo(x)", "no operation is called expo", "expo(x)"),
    ("y[n] = x", "y[n] = sqrt(x, x)", "sqrt takes 1 operand, not 2", "y[n] = sqrt(x, x)"),
    ("y[n] = x", "y[n] = x & x", "and takes integers or bools, not float32", "y[n] = x & x"),
    ("y[n] = x", "y[n] = n", "of the type index, where one of the type float32", "n"),
    ("y[n] = x", "y[n] = x + float64(x)", "add of float32 and float64", "y[n] = x + float64(x)"),
    ("y[n] = x", "y[x] = x", "the index of y is of the type float32", "y[x] = x"),
    ("y[n] = x", "y[n : 4] = splat(x)", "splat is of some machines", "y[n : 4] = splat(x)"),
    ("y[n] = x", "let v: Tx4 = splat(x)", "no type is called Tx4", "Tx4"),
    ("y[n] = x", "y[n] = y[n : 4]", "of the type float32x4, where one of", "y[n : 4]"),
    ("y[n] = x", "local v: float32x4[2]", "single elements, not with float32x4", "local v: float32x4[2]"),
    ("y[n] = x", "y[n] = fma(x, x, x)", "fma is of some machines", "y[n] = fma(x, x, x)"),
    ("y[n] = x", "call memcpy(&y[0], &data[0], n)", "calls no functions", "call memcpy(&y[0], &data[0], n)"),
    ("y[n] = x", "y[n / 0] = x", "an index is divided by 0", "y[n / 0] = x"),
    ("y[n] = x", "y[lo] = x", "undefined: lo", "lo"),
    ("y[n] = x", "y[n] = axis[0]", "", ""),
    ("y[n] = x", "y[n] = x ! x", "no part of the loop language", "!"),
    ("y[n] = x", "let N: index = 2", "N stands for an extent", "N"),
    ("y[n] = x", "x = 3", "x is not mutable", "x = 3"),
    ("y[n] = x", "reduce y[n] by sub: x", "`reduce` combines by", "reduce y[n] by sub: x"),
    ("y[n] = x", "if x\n      y[n] = x", "a condition is a comparison", "if x"),
    ("for n in", "parallel n in", "x stands outside of the parallel loop", "let x: T = data[0]"),
    (_LOOP, "parallel n in 0 .. N\n    y[n / 2] = data[n]", "may touch the same element of y", "parallel n in 0 .. N"),
    (_LOOP, "vector n in 1 .. N\n    y[n] = y[n - 1]", "reads y[n - 1]", "vector n in 1 .. N"),
    ("for n in", "fro n in", "`=` is missing here", "n"),
]  # fmt: skip
_RIGHT = """
operator u.wrong
  type T: float
  attr axis: int = -1
  in data: T[N]
  out y: T[N]
  let x: T = data[0]
  for n in 0 .. N
    y[n] = x
"""


def test_a_wrong_text_says_where() -> None:
    register_text(_RIGHT)
    failed = []
    for old, new, said, place in WRONG:
        text = _RIGHT.replace(old, new)
        assert text != _RIGHT, old
        with pytest.raises(RelayError) as wrong:
            register_text(text)
        found = wrong.value.diagnostics[0]
        if found.code != "R0644" or said not in found.title or found.span is None or (place and found.span.text != place):
            failed.append(f"{new}: {found.code} {found.title} at {found.span and found.span.text}")
    assert failed == []
    assert "u.wrong" in EXTENSIONS  # the right one stays


@pytest.mark.parametrize("value", [" + ".join(["x"] * 3000), "-" * 5000 + "x", "(" * 5000 + "x", "x > 0 ? 1 : " * 3000 + "0"])
def test_depth(value: str) -> None:
    """Depth is refused, before Python runs out of it."""
    found = message(register_text, _RIGHT.replace("= x", f"= {value}"))
    assert found.code == "R0644" and ("deep" in found.title or "in a row" in found.title)


def test_the_place_of_a_text_is_that_of_its_script(tmp_path: Path) -> None:
    """Line and column of the Python file that has the text, or of a file of its own."""
    script = tmp_path / "ops.py"
    script.write_text(f'from relaylang.ops.extensions import register_text\n\nregister_text("""{_RIGHT.replace("= x", "= z")}""")\n')
    found = message(load_file, str(script))
    assert (found.span.source.name, found.span.line, found.span.column) == (str(script), 11, 12)
    alone = tmp_path / "ops.kernel"
    alone.write_text(_RIGHT.replace("= x", "= z"))
    found = message(load_file, str(alone))
    assert (found.span.source.name, found.span.line, found.span.column) == (str(alone), 9, 12)
    assert message(load_file, str(tmp_path / "none.kernel")).code == "R0001"
    (tmp_path / "empty.kernel").write_text("# nothing\n")
    assert "has no operator" in message(load_file, str(tmp_path / "empty.kernel")).title


def test_types() -> None:
    """A call that does not fit the text is an error of types, at the argument."""

    def wrong(call: str, *types: str) -> str:
        params = ", ".join(f"%{n}: {ty}" for n, ty in zip("abc", types))
        return str(message(check, relay.parse(f"def @main({params}) {{ {call} }}")))

    f32 = "Tensor[(3, 4), float32]"
    assert "is of bool, and the kernel takes float32" in wrong("u.line(%a)", "Tensor[(2), bool]")
    assert "0.5 is no number of the type int8" in wrong("u.line(%a, factor=0.5f)", "Tensor[(2), int8]")
    assert "has no axis 2" in wrong("u.peak_along(%a, axis=2)", f32)
    assert "has 1 dimensions, and the kernel takes 2: `table: T[N, D]`" in wrong(
        "u.take(%a, %b)", "Tensor[(2), int8]", "Tensor[(2), int32]"
    )
    assert "is of float64, and the kernel has float32" in wrong(
        "u.add_at(%a, %b, %c)", "Tensor[(2), float32]", "Tensor[(2), int32]", "Tensor[(2), float64]"
    )
    assert "the extent K" in wrong("u.add_at(%a, %b, %c)", "Tensor[(2), float32]", "Tensor[(2), int32]", "Tensor[(3), float32]")
    assert "S..." in wrong("u.mix(%a, %b)", f32, "Tensor[(3), float32]")
    assert "strides has 1 elements, and none at 1" in wrong("u.windows(%a, strides=[1])", "Tensor[(1, 3, 3), float32]")
    assert "negative" in wrong("u.windows(%a, size=9)", "Tensor[(1, 3, 3), float32]")
    assert "0 must be positive" in wrong("u.windows(%a, strides=[0, 1])", "Tensor[(1, 3, 3), float32]")
    mod = relay.parse("def @main(%a: Tensor[(?, 4, 4), float32]) { u.windows(%a) }")
    check(mod)
    assert "Tensor[(?, 3, 3), float32]" in repr(mod["main"].checked_type)


@attrs_class("tests.BoundAttrs")
class BoundAttrs:
    bound: float
    names: str = "a"


def test_a_record_with_a_text() -> None:
    """A relation of the language's own or of Python gives the type, and the text has to fit it."""
    text = """
    operator u.shrink
      type T: float
      in data: T[S...]
      out y: T[S...]
      for i in 0 .. S
        y[i] = abs(data[i]) > bound ? data[i] : 0
    """
    record = Op("u.shrink", ("data",), BoundAttrs, tensor_identity)
    register(record, kernel=text)
    x = np.float32([[1, -3], [0.5, 2]])
    mod = relay.parse("def @main(%x: Tensor[(2, 2), float32]) { u.shrink(%x, bound=1.5f) }")
    assert relay.evaluate(mod, x).tolist() == relay.build(mod).run(x).tolist() == [[0, -3], [0, 2]]

    def refused(old: str, new: str, op: Op = record) -> str:
        assert old in text
        return str(message(register, op, kernel=text.replace(old, new)))

    assert "does not fit the type relation of u.shrink" in refused("out y: T[S...]", "out y: T[S..., 2]")
    assert "by its type relation, and 2 by its kernel" in refused("out y", "out z: T[S...]\n      out y")
    assert "takes the arguments data, and its kernel reads x" in refused("in data", "in x")
    assert "the text is of u.other" in refused("u.shrink", "u.other")
    assert "the operator's record declares its attributes" in refused("type T", "attr bound: float\n      type T")
    both = Op("u.shrink", ("data", "b"), None, broadcast)
    assert "reads data" in refused("in data", "in data", both)
    assert "is no function and no text" in str(message(register, record, kernel=3))


def test_annotations_that_are_types() -> None:
    """A script without `from __future__ import annotations` has classes and aliases as annotations."""
    kinds = {"a": int, "b": float | None, "c": Ints, "d": Floats, "e": bool, "f": str, "g": Any}
    made = attrs_class("tests.Kinds")(type("Kinds", (), {"__annotations__": kinds}))
    assert [(f.kind, f.optional) for f in made.schema.values()] == [  # type: ignore[attr-defined]
        *[("int", False), ("float", True), ("Ints", False), ("Floats", False), ("bool", False), ("str", False), ("AnyAttr", False)]
    ]


def test_a_kernel_that_leaves_its_buffers() -> None:
    register_text(_RIGHT.replace("y[n] = x", "y[n + 1] = x"))
    found = message(relay.evaluate, relay.parse("def @main(%x: Tensor[(2), float32]) { u.wrong(%x) }"), np.ones(2, "float32"))
    assert "its kernel leaves a buffer: y[2]" in found.title


_C_NAMES = """
operator u.names
  in restrict: float32[N]
  out arg0: float32[N]
  let long: float32 = restrict[0]
  for i in 0 .. N
    var expf: float32 = exp(long - long)
    arg0[i] = long * expf
"""


def test_a_quotient_of_extents_is_that_of_the_head() -> None:
    """It is rounded down in both, so that a window larger than the data has no places, with `?` too."""
    register_text("""
    operator u.places
      type T: float32
      attr window: int
      in data: T[N]
      out y: T[(N - window) / 2 + 1]
      out count: int32[2]
      parallel i in 0 .. (N - window) / 2 + 1
        y[i] = data[i * 2 + window - 1]
      for i in 0 .. 1
        count[0] = int32((N - window) / 2 + 1)
        count[1] = int32((N - window) % 2)
    """)
    for extent in ("3", "?"):
        mod = relay.parse(f"def @main(%x: Tensor[({extent}), float32]) {{ u.places(%x, window=4) }}")
        x = np.ones(3, "float32")
        machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
        for found in (relay.evaluate(mod, x), [part.numpy() for part in machine.run(x)]):
            assert (flat(found)[0].shape, flat(found)[1].tolist()) == ((0,), [0, 1])
    with pytest.raises(RelayError, match=r"a shape is negative: `y: T\[.*\]` is \(-1,\)"):
        relay.evaluate(mod, np.ones(1, "float32"))


def test_truth_values() -> None:
    register_text("""
    operator u.truth
      attr flip: bool = True
      in x: float32[N]
      out y: bool[N]
      var seen: bool = False
      for n in 0 .. N
        seen = seen | (x[n] > 1)
        y[n] = flip ? seen : True
    """)
    mod = relay.parse("def @main(%x: Tensor[(3), float32]) { (u.truth(%x), u.truth(%x, flip=False)) }")
    x = np.float32([0, 2, 0])
    for found in (relay.evaluate(mod, x), relay.build(mod).run(x)):
        assert [part.tolist() for part in flat(found)] == [[False, True, True], [True, True, True]]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("y[0] = x[x[0] + 1]", "an index is computed from a value of the type float32"),
        ("y[0] = x[x*2]", r"an index is computed from a value of the type const float32\*"),
        ("for i in 0 .. x[0]\n    y[i] = 0", "loop i has a bound of the type float32"),
        ("for i in 0 .. x\n    y[i] = 0", r"loop i has a bound of the type const float32\*"),
        ("for i in 0 .. size1\n    y[i] = 0", "an operator has extents with names, and no sizes"),
        ("y[0] = x[size(3)]", "an operator has extents with names, and no sizes"),
    ],
)
def test_indices_are_whole(statement: str, said: str) -> None:
    with pytest.raises(RelayError, match=said) as problem:
        register_text(f"operator u.wrong\n  in x: float32[N]\n  out y: float32[N]\n  {statement}\n")
    span = problem.value.diagnostics[0].span
    assert span is not None and span.line == 4


@pytest.mark.parametrize("name", ["lambda", "self", "keys", "schema"])
def test_attributes_have_no_names_of_python(name: str) -> None:
    with pytest.raises(RelayError, match=f"no attribute can be called {name}"):
        register_text(f"operator u.wrong\n  attr {name}: int = 1\n  out y: float32[2]\n  y[0] = {name}\n")


def test_names_of_c_are_no_names_of_the_kernel() -> None:
    register_text(_C_NAMES)
    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { u.names(%x) }")
    assert relay.build(mod).run(np.float32([3, 4])).tolist() == [3, 3]


def test_documentation() -> None:
    op = find("u.line")
    assert op is not None
    assert op.signature() == "u.line(data, factor=2.0, offset=1)"
    assert op.doc == "The data times a factor, plus an offset."


def test_opening_a_file_reads_no_text_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with undone():
        (tmp_path / "net.kernel").write_text(_RIGHT)
        (tmp_path / "net.relay").write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {\n  u.wrong(%x)\n}\n')
        for name in list(EXTENSIONS):
            relay.ops.extensions.unregister(name)
        status, _, said = call_relay(capsys, "check", "net.relay")
        assert status == 1 and "unknown operator `u.wrong`" in said
        status, out, said = call_relay(capsys, "check", "net.relay", "--load", "net.kernel")
        assert status == 0, said
        status, out, said = call_relay(capsys, "run", "net.relay", "--load", "net.kernel", "--input", "x=[1,2]")
        assert status == 0 and out == "[1. 1.] : Tensor[(2), float32]\n", said


def test_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package's operators are a text, or the path of one."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ops.kernel").write_text(_RIGHT.replace("u.wrong", "pack.one") + _RIGHT.replace("u.wrong", "pack.two"))
    install(
        tmp_path,
        "texts",
        {"ops": {"pack.one": "texts:PAGE", "pack.two": "texts:PAGE", "pack.three": "texts:PAGE"}},
        "from pathlib import Path\nPAGE = Path(__file__).with_name('ops.kernel')\n",
    )
    relay.parse("def @main(%x: Tensor[(2), float32]) { pack.two(pack.one(%x)) }")
    assert "is a text with pack.one, pack.two" in str(message(find, "pack.three"))


def test_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.relay").write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 9), float32]) {\n  u.peak_along(%x, axis=1)\n}\n'
    )
    for step, head in (("opencl", "__kernel void"), ("cuda", "__global__ void"), ("loops", "parallel v_u in 0 .. 2")):
        status, out, said = call_relay(capsys, "compile", str(tmp_path / "net.relay"), "--emit", step)
        assert status == 0 and head in out and "v_best" in out, said


def test_exporters(tmp_path: Path) -> None:
    """An exporter refuses the operator, unless it is said in others or has a rule."""
    pytest.importorskip("onnx")
    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { u.line(%x) }")
    check(mod)
    for form, export in (("onnx", export_onnx), ("stablehlo", export_stablehlo), ("relax", export_relax)):
        found = message(export, mod)
        assert found.code == "R0806" and f"export={{'{form}': rule}}" in str(found)
    made = EXTENSIONS["u.line"]
    register(
        Extension(made.op, made.kernel, export={"onnx": lambda e, call, x: e.custom("u", "Line", x, results=[call.checked_type])})
    )
    model = export_onnx(mod)
    (node,) = model.graph.node
    assert (node.domain, node.op_type) == ("u", "Line") and {o.domain for o in model.opset_import} == {"", "u"}
    register(Extension(made.op, made.kernel, lower=lambda attrs, args, types: relay.add(args[0], args[0])))
    assert [n.op_type for n in export_onnx(mod).graph.node] == ["Add"]
    assert relay.build(mod).run(np.float32([1, 2])).tolist() == [3, 5]  # compilers take the text


def test_register_compute() -> None:
    """TVM's steps, with a text where a script has a function of TE."""
    op = begin("u.steps", "twice")
    METHODS["add_argument"](op, "data", "Tensor", "")
    METHODS["add_type_rel"](op, "Identity")
    found = message(register_compute, "u.steps", lambda attrs, inputs, out: None)
    assert "function of TE or TIR" in found.title
    text = "\n".join(found.notes[1:])
    register_compute("u.steps", text.replace("data[i]", "data[i] * 2"))
    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { u.steps(%x) }")
    assert relay.evaluate(mod, np.float32([1, 2])).tolist() == relay.build(mod).run(np.float32([1, 2])).tolist() == [2, 4]
    assert "register_compute comes after" in message(METHODS["add_argument"], op, "more", "", "").title
    assert "is an operator of the language" in message(register_compute, "nn.relu", text).title
    assert "is no operator" in message(register_compute, "u.nothing", text).title


def test_the_example() -> None:
    folder = ROOT / "examples" / "kernels"
    register_text(folder / "detect.kernel")
    mod = relay.parse((folder / "detect.relay").read_text())
    anchors = np.float32([[y, x, y + 6, x + 9] for y, x in ((0, 0), (30, 40), (-9, 3), (5, 5), (2, 44), (20, 9))])
    inputs = {"deltas": real("float32", 1, 6, 4) / np.float32(20), "anchors": anchors, "scores": real("float32", 1, 6, 3)}
    boxes, valid, counts = relay.evaluate(mod, **inputs)
    for one, two in zip((boxes, valid, counts), flat(relay.build(mod).run(**inputs))):
        np.testing.assert_allclose(one, two, rtol=1e-6)
    assert boxes.min() >= 0 and boxes[..., 0::2].max() <= 32 and boxes[..., 1::2].max() <= 48
    assert not valid[0, 2] and valid[0, 3] and counts.tolist() == np.bincount(inputs["scores"].argmax(2).ravel(), minlength=3).tolist()


@pytest.mark.parametrize("verb", [["viz"], ["print"], ["match", "argmax(_)"], ["partition", "--target", "cmsis-nn", "--report"]])
def test_verbs_that_show_a_program_take_a_text(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    net = ROOT / "examples" / "kernels" / "detect.relay"
    status, _, said = call_relay(capsys, *verb, str(net), "--load", str(net.with_suffix(".kernel")))
    assert (status, said) == (0, "")


def test_a_session_takes_a_text() -> None:
    net = ROOT / "examples" / "kernels" / "detect.relay"
    status, out, said = relay_process("repl", "--load", net.with_suffix(".kernel"), net, stdin=":type @main\n")
    assert (status, said) == (0, "")
    assert out.endswith("Tensor[(3), int32])\n")
