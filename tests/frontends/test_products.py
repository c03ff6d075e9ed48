"""Importers' matrix products of every rank, as the runtimes compute them: interpreted, compiled, and in the VM."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from relaylang.frontends.tflite import import_tflite
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, IRModule, Tuple, Var
from relaylang.typing import infer
from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import outputs

#: A name, the imported program, its inputs by name, and the runtime's outputs.
Case = tuple[str, IRModule, dict[str, np.ndarray], list[np.ndarray]]
Shapes = tuple[tuple[int, ...], tuple[int, ...]]
QUICK = "c -num-threads=1 -cflags=-O1"


def check(cases: Iterable[Case], close: float = 1e-5) -> None:
    """Every executor computes what the runtime does. The programs are compiled as one."""
    names, bodies, params, given, wanted = [], [], [], [], []
    for name, module, inputs, expected in cases:
        main = module["main"]
        assert infer(module, fresh=True) == []
        assert sorted(p.name_hint for p in main.params) == sorted(inputs)
        own = [Var(f"p{len(params) + n}", p.checked_type) for n, p in enumerate(main.params)]
        names.append(name)
        bodies.append(Call(main, own))
        params += own
        given += [inputs[p.name_hint] for p in main.params]
        wanted.append(expected)
    assert names
    whole = IRModule.from_expr(Function(params, Tuple(bodies)))
    runs = {
        "debug": lambda: evaluate(whole, *given),
        "c": lambda: compile_module(whole, QUICK).run(*given),
        "vm": lambda: compile_vm(whole, QUICK).call("main", given),
    }
    wrong = []
    for executor, run in runs.items():
        for name, found, expected in zip(names, run(), wanted, strict=True):
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            for f, w in zip(found, expected, strict=True):
                f = np.asarray(f)
                if (f.shape, f.dtype) != (w.shape, w.dtype):
                    wrong.append(f"{executor} {name}: {f.dtype}{f.shape} in place of {w.dtype}{w.shape}")
                elif not np.allclose(f, w, rtol=0, atol=close * max(float(np.abs(w).max(initial=0)), 1) if w.dtype.kind == "f" else 0):
                    wrong.append(f"{executor} {name}: {f.ravel()[:4]} in place of {w.ravel()[:4]}")
    assert wrong == []


def few(cases: Sequence[Any], part: str) -> Sequence[Any]:
    """All cases, or some of each kind."""
    return cases if part == "all" else cases[::61]


PARTS = pytest.mark.parametrize("part", ["some", pytest.param("all", marks=pytest.mark.sweep)])


def data(*shape: int, dtype: str = "float32") -> np.ndarray:
    rng = np.random.default_rng([*shape, len(shape)])
    if dtype.startswith("float"):
        return rng.normal(size=shape).astype(dtype)
    # onnxruntime's sums of two products of bytes saturate at 16 bits.
    return rng.integers(0 if dtype[0] == "u" else -60, 250 if dtype == "uint8" else 60, shape).astype(dtype)


def operands(most: int = 5) -> list[Shapes]:
    """Shapes of two operands whose product numpy knows: every pair of ranks, batches that broadcast, extents of one and none."""
    front = (2, 1, 3)
    found: list[Shapes] = []
    for left, right in itertools.product(range(1, most + 1), repeat=2):
        for rows, depth, columns in ((2, 3, 4), (1, 3, 1), (2, 3, 1), (5, 1, 2), (1, 40, 33), (0, 3, 2), (2, 0, 4), (2, 3, 0)):
            a, b = ((*front, rows, depth)[-left:], (*front, depth, columns)[-right:])
            a, b = (depth,) if left == 1 else a, (depth,) if right == 1 else b
            found.append((a, b))
        for ones in (0, 1):  # one operand's batches are one
            pair = [(*front, 2, 3)[-left:] if left > 1 else (3,), (*front, 3, 4)[-right:] if right > 1 else (3,)]
            pair[ones] = (*[1] * (len(pair[ones]) - 2), *pair[ones][-2:])
            found.append((pair[0], pair[1]))
        if left > 2 and right > 2:  # none
            found.append(((*(0,) * (left - 2), 2, 3), (*(0,) * (right - 2), 3, 4)))
    return list(dict.fromkeys(found))


EINSUM = [
    "ij,jk->ik",
    "ij,kj->ik",
    "ji,jk->ik",
    "bij,bjk->bik",
    "bij,jk->bik",
    "bij,bkj->bik",
    "bij,bj->bi",
    "ij,bj->bi",
    "i,i->",
    "i,j->ij",
    "i,ij->j",
    "ij->ji",
    "ij->",
    "ij->i",
    "ii->i",
    "ii->",
    "bii->b",
    "bii->bi",
    "...ij,...jk->...ik",
    "...i,...i->...",
    "ij,jk,kl->il",
    "abc,cd,de->abe",
    "abij,abjk->abik",
    "abij,cjk->abick",
    "abcd,cd->ab",
    "ab,cd->abcd",
    "ij,ij->ij",
    "ij,ij->",
    "ij,jk",
    "bij,bjk",
    "ijk,k->ij",
    "ijkl,lm->ijkm",
    "abcde,e->abcd",
    "abcde,abcef->abcdf",
    "b...i,ij->b...j",
]
#: The extents of an equation's letters; those of its ellipsis are in front.
EXTENTS = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 3, "f": 2, "i": 3, "j": 4, "k": 2, "l": 5, "m": 2}


def equations() -> Iterator[tuple[str, list[tuple[int, ...]]]]:
    for text in EINSUM:
        for dots in ((), (2,), (2, 1, 2)) if "..." in text else ((),):
            terms = text.split("->")[0].split(",")
            shapes = []
            for term in terms:
                before, found, behind = term.partition("...")
                extents = [*(EXTENTS[c] for c in before), *(dots if found else ()), *(EXTENTS[c] for c in behind)]
                shapes.append(tuple(extents))
            yield text, shapes


# ONNX


def onnx_case(name: str, inputs: dict[str, np.ndarray], weights: Sequence[str] = (), **attrs: Any) -> Case:
    from tests.frontends.onnx.models import model, node
    from tests.frontends.onnx.runtime import theirs

    fed = {k: v for k, v in inputs.items() if k not in weights}
    shapes, dtypes = {k: v.shape for k, v in fed.items()}, {k: v.dtype.name for k, v in fed.items()}
    made = model([node(name, list(inputs), **attrs)], shapes, weights={k: inputs[k] for k in weights}, dtypes=dtypes)
    said = " ".join(f"{v.dtype}{list(v.shape)}" for v in inputs.values())
    return f"{name} {said} {attrs} {weights}", import_onnx(made).module, fed, theirs(made, fed)


def onnx_matmul() -> Iterator[Any]:
    for a, b in operands():
        for weights in ((), ("b",), ("a",)):
            yield "MatMul", {"a": data(*a), "b": data(*b)}, weights, {}
    for dtype in ("float64", "int32", "int64"):
        for a, b in operands(4)[::5]:
            yield "MatMul", {"a": data(*a, dtype=dtype), "b": data(*b, dtype=dtype)}, (), {}


def onnx_gemm() -> Iterator[Any]:
    for (m, k, n), one, two in itertools.product(((2, 3, 4), (1, 3, 1), (5, 1, 2), (0, 3, 2), (2, 3, 0)), (0, 1), (0, 1)):
        for bias in (None, (), (1,), (n,), (1, n), (m, 1), (m, n)):
            inputs = {"a": data(*((k, m) if one else (m, k))), "b": data(*((n, k) if two else (k, n)))}
            inputs |= {} if bias is None else {"c": data(*bias)}
            attrs = {"transA": one, "transB": two, **({} if bias == (n,) else {"alpha": 0.5, "beta": 2.0})}
            yield "Gemm", inputs, ("b",) if one != two else (), attrs


def onnx_einsum() -> Iterator[Any]:
    for text, shapes in equations():
        yield "Einsum", {f"x{n}": data(*s) for n, s in enumerate(shapes)}, (), {"equation": text}


def onnx_integer() -> Iterator[Any]:
    for number, (a, b) in enumerate(operands(4)):
        if 0 in (*a, *b):
            continue
        left, right = ("uint8", "int8")[number % 2], ("uint8", "int8")[number // 2 % 2]
        inputs = {"a": data(*a, dtype=left), "b": data(*b, dtype=right)}
        for zeros in ((), (3,), (3, 5)):
            points = {f"z{n}": np.asarray(z, kind) for n, (z, kind) in enumerate(zip(zeros, (left, right)))}
            yield "MatMulInteger", {**inputs, **points}, tuple(points), {}
        if len(a) > 1 and len(b) == 2:
            each = {"z0": np.asarray(2, left), "z1": np.arange(b[-1]).astype(right)}
            yield "MatMulInteger", {**inputs, **each}, ("b", *each), {}


def onnx_linear() -> Iterator[Any]:
    for a, b in operands(4):
        if 0 in (*a, *b) or 1 in (len(a), len(b)):
            continue
        scale, zero = np.asarray(0.02, "float32"), np.asarray(7, "uint8")
        order = {
            "a": data(*a, dtype="uint8"),
            "as": scale,
            "az": zero,
            "b": data(*b, dtype="uint8"),
            "bs": scale,
            "bz": zero,
            "ys": np.asarray(0.3, "float32"),
            "yz": np.asarray(100, "uint8"),
        }
        yield "QLinearMatMul", order, tuple(k for k in order if len(k) > 1), {}


@PARTS
@pytest.mark.parametrize("cases", [onnx_matmul, onnx_gemm, onnx_einsum, onnx_integer, onnx_linear])
def test_onnx(cases: Any, part: str) -> None:
    pytest.importorskip("onnxruntime")
    check(onnx_case(name, inputs, weights, **attrs) for name, inputs, weights, attrs in few(list(cases()), part))


# PyTorch


def torch_functions() -> Iterator[tuple[str, Any, list[tuple[int, ...]]]]:
    import torch

    f = torch.nn.functional
    for a, b in operands():
        yield "matmul", torch.matmul, [a, b]
    for a, b in operands(3):
        kinds = len(a), len(b)
        bias = np.matmul(np.zeros(a), np.zeros(b)).shape
        if kinds == (2, 2):
            yield "mm", torch.mm, [a, b]
            for c in {bias, bias[-1:], (), (1, bias[1]), (bias[0], 1)}:
                yield "addmm", lambda c, a, b: torch.addmm(c, a, b, alpha=0.5, beta=2), [c, a, b]
        if kinds == (2, 1):
            yield "mv", torch.mv, [a, b]
            yield "addmv", lambda c, a, b: torch.addmv(c, a, b, beta=3), [bias, a, b]
        if kinds == (1, 1):
            yield "dot", torch.dot, [a, b]
            yield "inner", torch.inner, [a, b]
            yield "outer", torch.outer, [a, b]
        if kinds == (3, 3) and a[0] == b[0]:
            yield "bmm", torch.bmm, [a, b]
            for c in {bias, bias[-1:], bias[1:], (1, *bias[1:])}:
                yield "baddbmm", lambda c, a, b: torch.baddbmm(c, a, b, alpha=2, beta=0.5), [c, a, b]
            yield "addbmm", torch.addbmm, [bias[1:], a, b]
    for rank in range(1, 6):
        for columns, extent in ((4, 3), (1, 3), (4, 1), (4, 0), (33, 40)):
            shape = (*(2, 1, 3, 2)[: rank - 1], extent)
            yield "linear", f.linear, [shape, (columns, extent)]
            yield "linear with a bias", f.linear, [shape, (columns, extent), (columns,)]
            yield "linear with a vector", f.linear, [shape, (extent,)]
            if extent:
                yield "bilinear", f.bilinear, [shape, (*shape[:-1], 2), (columns, extent, 2), (columns,)]
        for axes in range(min(rank, 3) + 1):
            shape = (2, 3, 1, 4, 2)[:rank]
            other = (*shape[rank - axes :], 3, 2)
            yield f"tensordot {axes}", lambda a, b, axes=axes: torch.tensordot(a, b, axes), [shape, other]
    yield "tensordot of axes", lambda a, b: torch.tensordot(a, b, ([2, 0], [0, 2])), [(2, 3, 4), (4, 5, 2)]
    for text, shapes in equations():
        yield f"einsum {text}", lambda *x, text=text: torch.einsum(text, *x), shapes


def torch_case(name: str, function: Any, shapes: Sequence[tuple[int, ...]]) -> Case:
    import torch

    from relaylang.frontends.torch import import_pytorch
    from tests.frontends.torch.cases import Call as Module

    inputs = tuple([torch.from_numpy(np.array(data(*s))) for s in shapes])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(Module(function), inputs)
    given = {f"x{n}": x.numpy() for n, x in enumerate(inputs)}
    module = import_pytorch(traced, Options(shapes={k: x.shape for k, x in given.items()}), names=list(given)).module
    return f"{name} {shapes}", module, given, [function(*inputs).numpy()]


@PARTS
def test_torch(part: str) -> None:
    pytest.importorskip("torch")
    check(torch_case(*case) for case in few(list(torch_functions()), part))


# TFLite


def lite_case(name: str, kind: str, inputs: Sequence[T], out: T, **options: Any) -> Case:
    fed = {f"x{n}": t for n, t in enumerate(inputs)}
    made = file({**fed, "y": out}, [Op(name, list(fed), ["y"], kind, options)], [k for k, t in fed.items() if t.data is None], ["y"])
    module = import_tflite(made).module
    given = {k: data(*t.shape, dtype=t.dtype) for k, t in fed.items() if t.data is None}
    return f"{name} {[t.shape for t in inputs]} {options}", module, given, outputs(made, [list(given.values())])[0]


def lite_cases() -> Iterator[tuple[Any, ...]]:
    for a, b in operands(5):
        if min(len(a), len(b)) < 2 or 0 in (*a, *b):
            continue
        out = T(np.matmul(np.zeros(a), np.zeros(b)).shape)
        for one, two in itertools.product((False, True), repeat=2):
            x, y = (*a[:-2], *a[:-3:-1]) if one else a, (*b[:-2], *b[:-3:-1]) if two else b
            for weight in (False, True):
                inputs = [T(x), const(data(*y)) if weight else T(y)]
                yield "BATCH_MATMUL", "BatchMatMulOptions", inputs, out, {"AdjX": one, "AdjY": two}
    for rank, keep, units in itertools.product(range(1, 5), (False, True), (4, 1, 33)):
        shape = (2, 3, 2, 5)[-rank:] if rank > 1 else (5,)
        rows = int(np.prod(shape[:-1]))
        out = T((*shape[:-1], units) if keep else (rows, units))
        for more in ([], [const(data(units))]):
            inputs = [T(shape), const(data(units, 5)), *more]
            yield "FULLY_CONNECTED", "FullyConnectedOptions", inputs, out, {"KeepNumDims": keep}


@PARTS
def test_tflite(part: str) -> None:
    pytest.importorskip("ai_edge_litert")
    check(lite_case(*case, **options) for *case, options in few(list(lite_cases()), part))
