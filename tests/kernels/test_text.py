"""The text of the loop language: it says everything, and mistakes in it are diagnostics with places."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.isa import BY_NAME
from relaylang.backends.cpu.program import Run
from relaylang.diagnostics import RelayError
from relaylang.kernels import ir, text
from relaylang.kernels.nest import Buf
from relaylang.kernels.reader import parse
from relaylang.kernels.render import Renderer
from relaylang.kernels.same import same
from relaylang.kernels.sizes import Sizes
from tests.backends.cpu.test_ops import FIRST, USED, program
from tests.kernels.differential import read_back
from tests.kernels.generator import generate
from tests.shared import few

TYPES = {"a": "const float32*", "b": "const int64*", "c": "float32*", "n": "index", "v": "float32x8", "p": "int32"}
i, n, v, p = ir.Var("i"), ir.Var("n"), ir.Var("v", "float32x8"), ir.Var("p", "int32")
size, other = Sizes([11, 13]).sizes


def one(value: ir.Expr) -> tuple[ir.Body, str]:
    body: ir.Body = [ir.Let("t", value)]
    return body, text.lines(body, types=TYPES)[0].partition(" = ")[2]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (ir.Const(0.0, "float32"), "0"),
        (ir.Const(-0.0, "float32"), "-0"),
        (ir.Const(float("-inf"), "float64"), "-inf"),
        (ir.Const(float("nan"), "float32"), "nan"),
        (ir.Const(0.1, "float32"), "0.1"),
        (ir.Const(1.0, "float16"), "1"),
        (ir.Const(True, "bool"), "1"),
        (ir.number(-4), "-4"),
        (n * 4 - 3, "n*4 - 3"),
        (3 - n, "3 - n"),
        ((n + 1) // 4 % 3, "((n + 1) / 4) % 3"),
        (n * n, "n * n"),
        (ir.minimum(n + 1, 5), "min(n + 1, 5)"),
        (ir.expr(size) * 4 + n, "size0*4 + n"),
        (ir.expr(size * 4 // 3), "size(((size0 * 4) / 3))"),
        (ir.load(Buf("a", (4, 5), "float32"), n, 2), "a[n*5 + 2]"),
        (ir.Load("a", n, "float32x8"), "a[n : 8]"),
        (ir.Load("a", n, "float32x8", True), "a[n : 8 aligned]"),
        (ir.Load("a", n, "int8x32"), "a[n : int8x32]"),
        (ir.Load("a", ir.Load("b", n, "int64") + 2, "float32"), "a[add<int64>(b[n], int64(2))]"),
        (ir.Load("a", ir.times(ir.Load("b", n, "int64"), 2), "float32"), "a[b[n]*2]"),
        (ir.Address("c", n, "float32*"), "&c[n]"),
        (ir.Address("c", n, "const float32*"), "&c[n]"),
        (ir.Cast(ir.number(4), "int64"), "int64(index(4))"),
        (ir.Cast(ir.Const(4, "int32"), "int64"), "int64(int32(4))"),
        (ir.Cast(ir.number(0), "const float32*"), "null(const float32*)"),
        (ir.op("max", ir.Const(0, "int32"), p), "max(0, p)"),
        (ir.op("lt", p, 3), "p < 3"),
        (ir.op("lt", ir.Const(1, "int8"), ir.Const(2, "int8")), "int8(1) < int8(2)"),
        (ir.op("add", ir.Const(1, "int8"), 2), "1 + 2"),
        (ir.Op("add", (ir.Const(1, "int8"), p), "int64"), "add<int64>(int8(1), p)"),
        (ir.op("saturate", p, type="int8"), "saturate<int8>(p)"),
        (ir.op("bitcast", p, type="float32"), "bitcast<float32>(p)"),
        (ir.select(p < 3, ir.Const(1.5, "float32"), ir.Load("a", n, "float32")), "(p < 3) ? 1.5 : a[n]"),
        (ir.splat(ir.Const(0.0, "float32"), 8), "splat(0)"),
        (ir.op("max", ir.splat(ir.Const(0.0, "float32"), 8), v), "max(splat(0), v)"),
        (ir.fma(v, ir.splat(ir.Const(2.0, "float32"), 8), v), "fma(v, splat(2), v)"),
        (ir.mix(v, v, range(8)), "mix(v, v, 0, 1, 2, 3, 4, 5, 6, 7)"),
        (ir.lane(v, 3), "lane(v, 3)"),
        (ir.Intrinsic("splat_quad", (ir.Address("a", n, "const float32*"),), "uint8x32"), "splat_quad(&a[n])"),
        (ir.Cast(ir.splat(ir.Const(1, "int32"), 8), "float32x8"), "float32x8(splat<int32x8>(int32(1)))"),
    ],
)
def test_expressions(value: ir.Expr, shown: str) -> None:
    body, line = one(value)
    assert line == shown
    assert same(parse("\n".join(text.lines(body, types=TYPES)), TYPES).body, body)


STATEMENTS: ir.Body = [
    ir.Note("every statement"),
    ir.Local("l", "float32x8", (2, 3), ir.REGISTERS, True),
    ir.Local("m", "int8", (4,)),
    ir.Let("w", ir.number(3), True),
    ir.While(ir.Var("w") > 0, [ir.Assign("w", ir.Var("w") - 1)]),
    ir.Loop("i", ir.number(0), n, [ir.Reduce("add", "c", i, ir.Const(1.0, "float32"))], ir.VECTOR),
    ir.Loop("i", ir.number(0), ir.number(6), [ir.Store("l", i, ir.splat(ir.Load("a", i, "float32"), 8))], ir.UNROLLED, 3),
    ir.If(n, [ir.Call("f", (ir.Address("m", ir.number(1), "int8*"), n, ir.number(4)))], [ir.Block([ir.Note("")])]),
    ir.If(ir.op("lt", n, 3), []),
    ir.Store("c", n * 8, ir.Load("l", ir.number(2), "float32x8"), True),
]
PAGE = """\
# every statement
local l: float32x8[2, 3] in registers = 0
local m: int8[4]
var w: index = 3
while w > 0
  w = w - 1
vector i in 0 .. n
  reduce c[i] by add: 1
unrolled i in 0 .. 6 by 3
  l[i] = splat(a[i])
if n
  call f(&m[1 : int8*], n, 4)
else
  do
    #
if n < 3
c[n*8 : 8 aligned] = l[2]"""


def test_statements() -> None:
    assert "\n".join(text.lines(STATEMENTS, types=TYPES)) == PAGE
    assert same(parse(PAGE, TYPES).body, STATEMENTS)


def test_kernels_and_functions() -> None:
    page = """\
run
  kernel_1(%x) -> output 0

# adds one
function f(x: const float32*, t: float32*, n: index)
  for i in 0 .. n
    t[i] = x[i] + 1

pack p: arg1: float32[2, 3] -> packed0: float32[6]
  packed0[0] = arg1[0]

kernel kernel_1
  # add: Tensor[(2, 3), float32]
  in arg0: float32[size0, 3] strides [size(size0 * 4), 1]
  out out0: float32[6]
  work tmp0: int8[64]
  table table0: int32[4]
  parallel u in 0 .. 3
    call f(&arg0[u], &out0[u : float32*], 2)
"""
    listing = parse(page)
    assert [f.doc for f in listing.functions] == ["adds one"] and listing.calls[0] == "run"
    assert listing.parts[1].notes == ["add: Tensor[(2, 3), float32]"]
    shown = [text.function(f) for f in listing.functions] + [text.kernel(part) for part in listing.parts]
    assert "\n\n".join("\n".join(lines) for lines in shown) + "\n" == page.partition("\n\n")[2]


@pytest.mark.parametrize("part", few(range(4), 0))
def test_random_kernels(part: int) -> None:
    for seed in range(part * 50, part * 50 + 50):
        read_back(generate(seed, 8 if seed % 2 else 0))


def test_sizes_are_known_after_reading() -> None:
    half: ir.Body = [ir.Loop("i", ir.number(0), ir.expr(size * 4 // 3 + other), [ir.Note("nothing")])]
    listing = parse("\n".join(text.lines(half)))
    code = Renderer().body(listing.body)
    assert code.sizes == {"size0", "size1"} and code.lines == Renderer().body(half).lines


PARTS = [range(first, min(first + 300, len(USED))) for first in range(0, len(USED), 300)]


@pytest.mark.parametrize("numbers", few([sorted(FIRST), *PARTS], sorted(FIRST)))
def test_every_lowering_is_read_back(numbers: Sequence[int]) -> None:
    mod, _ = program([(number, USED[number]) for number in numbers])
    made = lower_module(mod, "main", {}, BY_NAME["avx2"])
    count = 0
    for kernel in [item.kernel for item in [*made.prepare, *made.run] if isinstance(item, Run)]:
        kinds = {
            "in": kernel.params,
            "packed": [p.target for p in kernel.packs],
            "out": kernel.outs,
            "work": [*kernel.work, kernel.fault],
            "table": [b for b, _ in kernel.constants],
        }
        buffers = [(kind, buf) for kind, bufs in kinds.items() for buf in bufs]
        for body in [stage.body for stage in kernel.stages]:
            page = "\n".join(text.kernel(text.Part("k", buffers, body)))
            assert same(parse(page).parts[0].body, body), page
            count += 1
        for function in kernel.functions:
            page = "\n".join(text.function(function))
            assert same(parse(page).functions[0].body, function.body), page
    assert count > 100


@pytest.mark.parametrize(
    ("page", "place", "message"),
    [
        ("c[0] = d[0]", (1, 8), "undefined: d"),
        ("let t: float31 = 0", (1, 8), "no type is called float31"),
        ("let t: float32 = flor(a[0])", (1, 18), "no operation is called flor"),
        ("c[0] = a[0", (1, 11), "`]` is missing here"),
        ("c[0] = (a[0] + 1", (1, 17), "`)` is missing here"),
        ("c[0] = a[0] $ 1", (1, 13), "`$` is no part of the loop language"),
        ("c[0] = a[0] 1", (1, 13), "`1` does not belong here"),
        ("c[0] = p", (1, 8), "a value of the type int32, where one of the type float32 is asked for"),
        ("for i in 0 .. 4\n    c[i] = 0\n  c[i] = 0", (3, 3), "the line is indented in another way than the one before it"),
        ("c[0] = 0\n  c[1] = 0", (2, 3), "nothing can stand inside this statement"),
        ("else\n  c[0] = 0", (1, 1), "`else` has no `if` before it"),
        (
            "for i in 0 .. 4\n  parallel j in 0 .. 4\n    c[j] = 0",
            (2, 3),
            "parallel loop j is not outermost, or its bounds are not constant",
        ),
        ("n[0] = 1", (1, 1), "n is no array"),
        ("p = 3", (1, 1), "p is not mutable"),
        ("local r: float32[4] in registers\nr[n] = 0", (2, 1), "r is in registers; its index has n"),
        ("c[0] = " + "(" * 300, (1, 208), "brackets are nested more than 200 deep"),
    ],
)
def test_mistakes(page: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(RelayError) as caught:
        parse(page, TYPES)
    (found,) = caught.value.diagnostics
    span = found.labels[0].span
    assert found.code == "R0644" and found.title == message and span is not None and (span.line, span.column) == place
