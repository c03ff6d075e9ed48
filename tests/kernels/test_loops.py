"""The loop language: its rules, its C, its text, and schedules that compute the same."""

from __future__ import annotations

import ast
import ctypes
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.arith import BYTES, PLAIN
from relaylang.backends.cpu.cc import Compiler, Unit
from relaylang.backends.cpu.fragments import fragments, needed
from relaylang.backends.cpu.gemm import block_kernel
from relaylang.backends.cpu.isa import BY_NAME
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.program import Run
from relaylang.ir import IRModule
from relaylang.kernels import render, text
from relaylang.kernels.check import RULES, check, check_function
from relaylang.kernels.index import digits
from relaylang.kernels.ir import (
    PARALLEL,
    REGISTERS,
    UNROLLED,
    Assign,
    Body,
    Call,
    Const,
    Expr,
    Function,
    If,
    Intrinsic,
    Let,
    Linear,
    Load,
    Local,
    Loop,
    Op,
    Param,
    Reduce,
    Stmt,
    Store,
    Var,
    address,
    expr,
    fma,
    load,
    loop,
    maximum,
    minimum,
    number,
    splat,
    store,
    vector,
)
from relaylang.kernels.nest import Buf
from relaylang.kernels.rewrites import (
    Refused,
    chunk,
    fuse,
    lanes,
    parallelise,
    reorder,
    serial,
    split,
    tile,
    unroll,
    vectorise,
)
from tests.backends.cpu.test_ops import FIRST, USED, program
from tests.shared import ROOT, few, syntax_tree

A, B, C = (Buf(name, shape, "float32") for name, shape in (("a", (12, 20)), ("b", (20, 8)), ("c", (12, 8))))
i, j, k = Var("i"), Var("j"), Var("k")
EXPORT = '__attribute__((visibility("default")))'
NAMES = {"a", "b", "c", "n"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path / "cache"))


def product() -> Body:
    """c += a * b, in the plainest order."""
    term = load(A, i, k) * load(B, k, j)
    update = Reduce("add", "c", C_at(i, j), term)
    return [loop("i", 0, 12, [loop("j", 0, 8, [loop("k", 0, 20, [update])])])]


def C_at(row: Expr, column: Expr) -> Expr:
    return row * 8 + column


def added() -> Body:
    return [loop("i", 0, 96, [Let("t", load(C, i) + load(C, i)), store(C, Var("t", "float32"), i)])]


def run(body: Sequence[Stmt], functions: Sequence[render.Renderer] = ()) -> np.ndarray:
    """What the statements leave in c, as compiled C."""
    compiler = Compiler({})
    head = f"{EXPORT} void f(const float* restrict a, const float* restrict b, float* restrict c, long lo, long hi) {{"
    code = render.Renderer().body(body)
    whole = "\n".join([*["\n".join(f.lines) for f in functions], head, *code.lines, "}"])
    used = {*code.helpers, *(h for f in functions for h in f.helpers)}
    helpers = f"#define R_LOCAL static\n#define R_LANES {compiler.isa.lanes}\n" + "\n\n".join(
        fragments()[n].text for n in needed(used)
    )
    library = compiler.compile([Unit(f"{helpers}\n{whole}")], whole, None)
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, buf.shape).astype(np.float32) for buf in (A, B, C))
    units = next((s.trips for s in body if isinstance(s, Loop) and s.kind == PARALLEL), 1)
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        handle = ctypes.CDLL(file.name)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, c)]
    for unit in range(units or 1):
        handle.f(*pointers, ctypes.c_long(unit), ctypes.c_long(unit + 1))
    return c


# -- indices ---------------------------------------------------------------------------------------------------------------


def test_index_arithmetic_folds() -> None:
    cases: list[tuple[Expr, str]] = [
        (i + 0, "i"),
        (i * 4 + j + 3, "i*4 + j + 3"),
        (i * 4 + i * 2 - 1, "i*6 - 1"),
        (2 * i - i * 2, "0"),
        ((i + 3) * 8 // 1, "i*8 + 24"),
        (i % 1, "0"),
        ((i * 2 + 1) % 4, "((i*2 + 1) % 4)"),
        (number(17) // 4 + number(17) % 4, "5"),
        (3 - i, "3 - i"),
        (j - i * 2 - 1, "j - i*2 - 1"),
        (-1 * i, "-i"),
        (i * j, "(i * j)"),
        (minimum(3, 5) + maximum(3, 5), "8"),
        (minimum(i + 1, 5), "((i + 1) > 5 ? 5 : (i + 1))"),
        (expr("n") + 12, "n + 12"),
    ]
    assert [render.render(value) for value, _ in cases] == [text for _, text in cases]


def test_digits_are_the_index_at_an_offset() -> None:
    u = Var("u")
    assert [render.render(d) for d in digits(u, [3, 1, 4, 5])] == ["((u / 5) / 4)", "0", "((u / 5) % 4)", "(u % 5)"]
    assert [render.render(d) for d in digits(u, [1, 7, 1])] == ["0", "u", "0"]


# -- rules -----------------------------------------------------------------------------------------------------------------

ONE = Const(1.0, "float32")
REG = Local("r", "float32", (4,), REGISTERS)
WRONG: dict[str, tuple[Body, str]] = {
    "_names": ([store(C, load(A, i), 0)], "undefined: i"),
    "_kinds": ([Loop("i", number(0), number(4), [], "sideways")], "loop i: kind sideways, step 1"),
    "_parallels": (
        [loop("i", 0, 4, [loop("j", 0, 4, [], PARALLEL)])],
        "parallel loop j is not outermost, or its bounds are not constant",
    ),
    "_unrolls": ([loop("i", 0, "n", [], UNROLLED)], "unrolled loop i has no constant bounds"),
    "_registers": ([REG, loop("i", 0, 4, [store(REG, ONE, i)])], "r is in registers; its index has i"),
    "_types": ([store(C, ONE, Const(1.0, "float32"))], "the index of c is of the type float32"),
    "_lanes": ([store(C, Intrinsic("fma", (ONE, ONE), "float32"), 0)], "the intrinsic fma with 2 operands"),
    "_operations": ([store(C, Op("half", (ONE,), "float32"), 0)], "no operation is called half"),
    "_assigned": ([Let("t", ONE), Assign("t", ONE)], "t is not mutable"),
}


def test_every_rule_has_a_violation() -> None:
    assert [rule.__name__ for rule in RULES] == list(WRONG)


@pytest.mark.parametrize("rule", WRONG)
def test_violations(rule: str) -> None:
    body, message = WRONG[rule]
    assert check(body, NAMES) == [message]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([REG, loop("i", 0, 5, [store(REG, ONE, i)], UNROLLED)], "r[0..4] leaves the array"),
        ([REG, Let("p", address(REG, 0))], "r is in registers and has no address"),
        ([loop("i", 0, 2, [], PARALLEL), loop("j", 0, 2, [], PARALLEL)], "a stage has one parallel loop"),
        ([loop("i", 0, 2, [Let("t", ONE)]), store(C, Var("t", "float32"), 0)], "undefined: t"),
        ([store(C, fma(ONE, ONE, splat(ONE, 4)), 0)], "fma of float32, float32, float32x4"),
        (
            [Let("t", Intrinsic("dot_pair", (*(Var("n", ty) for ty in ("int16x8", "int8x8", "int32x4")),), "int32x4"))],
            "dot_pair of int16x8, int8x8, int32x4",
        ),
    ],
)
def test_further_violations(body: Body, message: str) -> None:
    assert check(body, NAMES) == [message]


# -- C and text ------------------------------------------------------------------------------------------------------------


def block(rows: int, vectors: int, width: int) -> Function:
    """A block of a product in registers: t[r][v] = sum over l of x[r][l] * w[l][v]."""
    vec = vector("float32", width)
    c, b = Local("c", vec, (rows, vectors), REGISTERS, zero=True), Local("b", vec, (vectors,), REGISTERS)
    x, w, t, n = Param("x", "const float32*"), Param("w", "const float32*"), Param("t", "float32*"), Param("n", "index")
    r, v, l = Var("r"), Var("v"), Var("l")
    step = vectors * width
    return Function(
        "block",
        [x, w, t, n],
        [
            c,
            loop(
                "l",
                0,
                "n",
                [
                    b,
                    loop("v", 0, vectors, [store(b, load(w, l * step + v * width, lanes=width), v)], UNROLLED),
                    loop(
                        "r",
                        0,
                        rows,
                        [
                            Let("a", splat(load(x, r * 20 + l), width)),
                            loop("v", 0, vectors, [store(c, fma(Var("a", vec), load(b, v), load(c, r, v)), r, v)], UNROLLED),
                        ],
                        UNROLLED,
                    ),
                ],
            ),
            loop("r", 0, rows, [loop("v", 0, vectors, [store(t, load(c, r, v), r * step + v * width)], UNROLLED)], UNROLLED),
        ],
        "rows times vectors in registers",
    )


def test_register_arrays_are_variables() -> None:
    made = block(2, 1, 8)
    assert check_function(made) == []
    assert render.function(made).split("\n") == [
        "// rows times vectors in registers",
        "R_LOCAL __attribute__((noinline)) void block(const float* restrict x, const float* restrict w, float* restrict t, long n) {",
        "  r_vf c_0 = {0}, c_1 = {0};",
        "  for (long l = 0; l < n; l++) {",
        "    r_vf b_0;",
        "    b_0 = *(const r_vfu*)(w + l*8);",
        "    {",
        "      const r_vf a = r_splat_vf(x[l]);",
        "      c_0 = r_fma_vf(a, b_0, c_0);",
        "    }",
        "    {",
        "      const r_vf a = r_splat_vf(x[l + 20]);",
        "      c_1 = r_fma_vf(a, b_0, c_1);",
        "    }",
        "  }",
        "  *(r_vfu*)t = c_0;",
        "  *(r_vfu*)(t + 8) = c_1;",
        "}",
    ]
    assert text.function(made) == [
        "# rows times vectors in registers",
        "function block(x: const float32*, w: const float32*, t: float32*, n: index)",
        "  local c: float32x8[2, 1] in registers = 0",
        "  for l in 0 .. n",
        "    local b: float32x8[1] in registers",
        "    unrolled v in 0 .. 1",
        "      b[v] = w[l*8 + v*8 : 8]",
        "    unrolled r in 0 .. 2",
        "      let a: float32x8 = splat(x[r*20 + l])",
        "      unrolled v in 0 .. 1",
        "        c[r + v] = fma(a, b[v], c[r + v])",
        "  unrolled r in 0 .. 2",
        "    unrolled v in 0 .. 1",
        "      t[r*8 + v*8 : 8] = c[r + v]",
    ]


def test_neighbours_are_multiplied_in_one_step() -> None:
    made = block_kernel("block", BY_NAME["avx512"], BYTES, 1, 1, 64, 1, 1, 4, True)
    assert check_function(made) == []
    assert render.function(made).split("\n")[1:13] == [
        "  r_vi c_0;",
        "  c_0 = *(const r_vi*)begin;",
        "  const int8_t* q = w;",
        "  const uint8_t* x0 = x;",
        "  for (long l0 = 0; l0 < n0; l0++) {",
        "    {",
        "      r_vq b_0;",
        "      b_0 = *(const r_vq*)q;",
        "      {",
        "        const r_vuq a = r_splat_quad_vuq(x0);",
        "        c_0 = r_dot_quad_vi(a, b_0, c_0);",
        "      }",
    ]
    assert text.function(made)[2] == "  unrolled r in 0 .. 1"
    assert "        let a: uint8x64 = splat_quad(&x0[k*4 + r*64])" in text.function(made)


def test_a_block_asks_for_lines_of_the_cache_that_come_later() -> None:
    made = block_kernel("block", BY_NAME["avx2"], PLAIN["float32"], 2, 3, 64, 1, 4, 1, False, 2)
    assert check_function(made) == []
    found = render.function(made)
    assert "const float* restrict w, const float* restrict ahead, float* restrict t" in found
    assert "    __builtin_prefetch(far);\n    __builtin_prefetch(far + 16);\n    far = far + 32;\n    x0 = x0 + s0;\n" in found


def test_a_block_in_registers_computes_a_product() -> None:
    width = Compiler({}).isa.lanes
    vectors = max(1, 8 // width)
    made = block(12, vectors, width)
    t = Local("t", "float32", (12, vectors * width))
    w = Local("w", "float32", (20, vectors * width), zero=True)
    r, q = Var("r"), Var("q")
    body: Body = [
        t,
        w,
        loop("r", 0, 20, [loop("q", 0, 8, [store(w, load(B, r, q), r, q)])]),
        Call("block", (address(A, 0), address(w, 0), address(t, 0, written=True), number(20))),
        loop("r", 0, 12, [loop("q", 0, 8, [Reduce("add", "c", r * 8 + q, load(t, r, q))])]),
    ]
    assert check(body, NAMES) == []
    np.testing.assert_array_equal(run(body, [render.Renderer(0).function(made)]), run(product()))


# -- schedules -------------------------------------------------------------------------------------------------------------

SCHEDULES: dict[str, Callable[[Body], Body]] = {
    "split": lambda s: split(s, "k", 4),
    "split with a rest": lambda s: split(s, "j", 3),
    "chunk with a rest": lambda s: chunk(s, "k", 7, "q"),
    "reorder": lambda s: reorder(reorder(s, "j", "k"), "i", "k"),
    "tile": lambda s: tile(s, "i", "j", 5, 3),
    "unroll": lambda s: unroll(split(s, "k", 5), "ki"),
    "vectorise": lambda s: vectorise(reorder(s, "j", "k"), "j"),
    "fuse": lambda s: fuse(s, "i", "j", "p"),
    "parallelise": lambda s: parallelise(s, "i"),
    "parallelise in units": lambda s: parallelise(s, "i", 5),
    "all of them": lambda s: parallelise(unroll(vectorise(reorder(split(s, "k", 4), "j", "ko"), "ki", True), "j"), "i", 4),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_compute_the_same(name: str) -> None:
    body = SCHEDULES[name](product())
    assert check(body, NAMES) == []
    np.testing.assert_array_equal(run(body), run(product()))


def test_lanes_make_vectors() -> None:
    width = Compiler({}).isa.lanes
    body = lanes(added(), "i", width)
    assert check(body, NAMES) == []
    assert f"c[i : {width}] = t" in "\n".join(text.lines(body))
    np.testing.assert_array_equal(run(body), run(added()))


def test_marks_can_be_taken_off() -> None:
    assert text.lines(serial(vectorise(added(), "i"), "i")) == text.lines(added())


INDIRECT: Body = [loop("i", 0, 4, [store(C, load(A, i), Load("b", i, "int32"))])]
CARRIED: Body = [loop("i", 1, 4, [store(C, load(C, i - 1), i)])]
SHARED: Body = [loop("i", 0, 4, [loop("j", 0, 4, [store(C, load(A, i), i + j)])])]
LAST: Body = [loop("i", 0, 4, [loop("j", 0, 4, [store(C, load(A, i, j), j)])])]
OPAQUE: Body = [loop("i", 0, 4, [Call("g", (i,))])]
REGISTERED: Body = [
    Local("r", "float32", (4,), REGISTERS),
    loop("i", 0, 4, [Store("r", i, ONE)], UNROLLED),
]
BRANCH: Body = [loop("i", 0, 4, [If(i < 2, [store(C, ONE, i)])])]
OVERLAP, ELEMENT = "iterations of", " may touch the same element of c:"
REFUSALS: dict[str, tuple[Callable[[], Body], str]] = {
    "no loop": (lambda: unroll(product(), "z"), "0 loops over z"),
    "no constant length": (lambda: unroll([loop("i", 0, "n", [])], "i"), "the length of loop i is not constant"),
    "indirect": (lambda: vectorise(INDIRECT, "i"), f"{OVERLAP} loop i{ELEMENT} each writes c[b[i]]"),
    "carried": (lambda: vectorise(CARRIED, "i"), f"{OVERLAP} loop i{ELEMENT} one writes c[i], another reads c[i - 1]"),
    "a reduction": (lambda: vectorise(product(), "k"), f"{OVERLAP} loop k{ELEMENT} each reduces c[i*8 + j]"),
    "loops inside": (lambda: vectorise(product(), "i"), "loop i has loops or conditions inside"),
    "a branch inside": (lambda: vectorise(BRANCH, "i"), "loop i has loops or conditions inside"),
    "overlap": (lambda: parallelise(SHARED, "i"), f"{OVERLAP} loop i{ELEMENT} each writes c[i + j]"),
    "the last one stays": (lambda: reorder(LAST, "i", "j"), f"{OVERLAP} loop i{ELEMENT} each writes c[j]"),
    "a call": (lambda: parallelise(OPAQUE, "i"), "loop i calls g, which may touch anything"),
    "inner": (lambda: parallelise(product(), "j"), "loop j is not outermost"),
    "from elsewhere": (lambda: parallelise(CARRIED, "i"), "loop i does not count from 0 to a constant"),
    "not nested": (lambda: reorder(product(), "i", "k"), "loop k is not all that loop i has inside"),
    "lanes": (lambda: lanes(added(), "i", 7), "loop i does not have a multiple of 7 iterations"),
    "registers": (lambda: serial(REGISTERED, "i"), "r is in registers, so loop i stays written out"),
    "lanes without vectors": (
        lambda: lanes([loop("i", 0, 8, [Store("d", i, Load("d", i, "uint64"))])], "i", 8),
        "there are no vectors of uint64",
    ),
    "lanes of two sizes": (
        lambda: lanes([loop("i", 0, 8, [Store("c", i, Load("a", i, "float32")), Store("d", i, Load("e", i, "int64"))])], "i", 8),
        "there are no vectors of float32 beside int64",
    ),
    "lanes across": (lambda: lanes([loop("i", 0, 8, [store(C, load(A, i * 3), i)])], "i", 8), "a is not read one by one along i"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    rewrite, message = REFUSALS[name]
    with pytest.raises(Refused) as caught:
        rewrite()
    assert str(caught.value) == message


def test_nodes_are_shared_and_never_changed() -> None:
    body = product()
    before = text.lines(body)
    tile(body, "i", "j", 4, 4)
    assert text.lines(body) == before
    assert isinstance(body[0], Loop) and Linear.__match_args__ == ("terms", "const") and Store.__slots__ is not None


# -- the lowerings ----------------------------------------------------------------------------------------------------------


def kernels(mod: IRModule) -> list[Kernel]:
    made = lower_module(mod, "main", {}, BY_NAME["avx2"])
    return [item.kernel for item in [*made.prepare, *made.run] if isinstance(item, Run)]


PARTS = [range(first, min(first + 300, len(USED))) for first in range(0, len(USED), 300)]


@pytest.mark.parametrize("numbers", few([sorted(FIRST), *PARTS], sorted(FIRST)))
def test_every_lowering_obeys_the_rules(numbers: Sequence[int]) -> None:
    mod, _ = program([(number, USED[number]) for number in numbers])
    wrong = []
    for kernel in kernels(mod):
        buffers = [
            *kernel.params,
            *kernel.outs,
            *kernel.work,
            kernel.fault,
            *(p.target for p in kernel.packs),
            *(b for b, _ in kernel.constants),
        ]
        names = {*(b.name for b in buffers), "lo", "hi"}
        wrong += [problem for stage in kernel.stages for problem in check(stage.body, names)]
        wrong += [problem for f in kernel.functions if isinstance(f, Function) for problem in check_function(f, names)]
    assert wrong == []


def test_no_lowering_writes_c() -> None:
    """Lowerings know neither the types nor the numbers of C, and no renderer."""
    folder = ROOT / "relaylang" / "backends" / "cpu"
    for path in [*(folder / "lower").glob("*.py"), folder / "transposes.py", folder / "gemm.py", folder / "lowering.py"]:
        names = {n.id for n in ast.walk(syntax_tree(path)) if isinstance(n, ast.Name)}
        assert not names & {"literal", "Renderer", "render"}, path
        texts = [n.value for n in ast.walk(syntax_tree(path)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        assert not [t for t in texts if "for (" in t or t.rstrip().endswith((";", "{"))], path
