"""Arrays of extents that a file states take their bytes from its budget first; folding takes its steps."""

from __future__ import annotations

import ast
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import relaylang.frontends
from relaylang.diagnostics.unsupported import Report
from relaylang.frontends.common import Builder, Malformed
from relaylang.frontends.common.listing import Listing
from relaylang.frontends.options import Options
from relaylang.runtime.budget import Exhausted
from tests.shared import check_each, syntax_tree

HOME = Path(relaylang.frontends.__file__).parent
#: numpy's functions whose arguments are the extents of what they allocate. Others make no more than they get.
ALLOCATING = set(
    "arange bartlett blackman eye empty full geomspace hamming hanning identity indices kaiser kron linspace logspace mgrid "
    "meshgrid ndindex ogrid ones outer pad repeat resize tile tri vander zeros".split()
)
#: What takes the bytes of all its arrays in another place.
ELSEWHERE = {
    ("common/arrays.py", ""): "it is the place",
    ("coreml/families/packed.py", "_spread"): "it takes the bytes of the data's shape, to which factors are repeated",
    ("coreml/families/packed.py", "lut_to_sparse"): "it takes the bytes of the repeated mask",
    ("mxnet/params.py", "sparse"): "it takes the bytes of the dense array itself, and the file holds an entry for each row",
    ("tensorflow/tensors.py", "_filled"): "its caller takes the bytes of the tensor",
    ("tflite/tensors.py", "_dense"): "its caller takes the bytes of every level of the sparse tensor",
}


def _is_bounded(argument: ast.expr) -> bool:
    """Whether an argument is a literal, or the extents that `reserve` has taken from the budget."""
    if isinstance(argument, ast.Call):
        return isinstance(argument.func, ast.Attribute) and argument.func.attr in ("reserve", "arange")
    parts = [n for n in ast.walk(argument) if not isinstance(n, (ast.Tuple, ast.List, ast.expr_context, ast.unaryop, ast.UnaryOp))]
    return all(isinstance(n, ast.Constant) for n in parts)


def _unbounded(path: Path) -> list[str]:
    """The calls of a file that allocate by extents which no budget has seen."""
    found = []
    name = path.relative_to(HOME).as_posix()
    for function in [n for n in ast.walk(syntax_tree(path)) if isinstance(n, ast.FunctionDef)]:
        if (name, "") in ELSEWHERE or (name, function.name) in ELSEWHERE:
            continue
        for call in [n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]:
            assert isinstance(call.func, ast.Attribute)
            owner = call.func.value
            if isinstance(owner, ast.Name) and owner.id == "np" and call.func.attr in ALLOCATING:
                extents = call.args[2:] if call.func.attr == "linspace" else call.args[:1]
                if not all(map(_is_bounded, extents)):
                    found.append(f"{name}:{call.lineno}: np.{call.func.attr}")
    return found


@pytest.mark.sweep
def test_every_array_of_a_file_s_extents_is_made_under_its_budget() -> None:
    paths = sorted(HOME.rglob("*.py"))
    assert len(paths) > 100
    assert [line for path in paths for line in _unbounded(path)] == []


def test_the_search_finds_what_is_made_without_a_budget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(globals(), "HOME", tmp_path)
    path = tmp_path / "x.py"
    path.write_text("def f(b, n):\n return np.zeros((1, 2)), np.ones((n, 2)), np.eye(b.arrays.reserve(n)), np.linspace(0, 1, n)\n")
    assert _unbounded(path) == ["x.py:2: np.ones", "x.py:2: np.linspace"]


def _builder(**budget: int) -> Builder:
    listing = Listing("net")
    return Builder(listing, Report("net"), Options(**budget))


HUGE = 1 << 40
MAKERS = {
    "zeros": lambda a: a.zeros((HUGE, 2)),
    "ones": lambda a: a.ones(HUGE),
    "full": lambda a: a.full([HUGE], 1, "int8"),
    "eye": lambda a: a.eye(1 << 20),
    "arange": lambda a: a.arange(-HUGE, 3),
    "linspace": lambda a: a.linspace(0, 1, HUGE),
    "repeat": lambda a: a.repeat(np.arange(2), np.array([1, HUGE])),
    "tile": lambda a: a.tile(np.ones(3), (HUGE, 1)),
    "outer": lambda a: a.outer(np.ones(1 << 14), np.ones(1 << 14)),
    "reserve": lambda a: a.reserve((1 << 70, 1)),
}


def test_nothing_is_allocated_beyond_the_budget() -> None:
    def check(name: str) -> None:
        arrays = _builder(bytes=1 << 20).arrays
        with pytest.raises(Exhausted):
            MAKERS[name](arrays)

    tracemalloc.start()
    check_each(check, MAKERS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 23


def test_makers_give_what_numpy_gives() -> None:
    arrays = _builder().arrays
    same = [
        (arrays.zeros((2, 3), bool), np.zeros((2, 3), bool)),
        (arrays.ones(3), np.ones(3)),
        (arrays.full((2,), 7), np.full(2, 7)),
        (arrays.eye(2, 3, 1), np.eye(2, 3, 1)),
        (arrays.arange(5), np.arange(5)),
        (arrays.arange(3, 1), np.arange(3, 1)),
        (arrays.linspace(0, 1, 5), np.linspace(0, 1, 5)),
        (arrays.repeat(np.arange(3), [2, 0, 1]), np.repeat(np.arange(3), [2, 0, 1])),
        (arrays.tile(np.eye(2), (2, 1)), np.tile(np.eye(2), (2, 1))),
        (arrays.outer(np.arange(3), np.arange(2)), np.outer(range(3), range(2))),
    ]
    for ours, numpys in same:
        assert ours.dtype == numpys.dtype and ours.tolist() == numpys.tolist()
    with pytest.raises(Malformed, match="needs -1 elements"):
        arrays.zeros((2, -1))


def test_folding_has_a_bound_of_steps() -> None:
    """Products of the same constants: each takes little memory, and 2**24 steps."""
    b = _builder(work=1 << 28)
    left = b.const(np.ones((256, 256), "float32"))
    with pytest.raises(Exhausted, match=r"computing its constants needs 2[0-9,]+ steps in all.*268,435,456"):
        for _ in range(100):
            b.op("nn.dense", left, left)
    assert 10 < b.budget.used_work >> 24 <= 17


def test_dynamic_extents_do_not_get_past_the_budget() -> None:
    """The values of operands are the extents of the result, so that its type tells no size."""
    b = _builder()
    made = b.op("dyn.full", b.const(1.0, "float32"), b.const(np.array([1 << 20, 1 << 20])), dtype="float32")
    assert made.op.name == "full" and b.shape(made) == (1 << 20, 1 << 20)
    assert b.value(b.op("dyn.tile", b.const(np.array([1, 2])), b.const(np.array([2])), reps=None)).tolist() == [1, 2, 1, 2]
