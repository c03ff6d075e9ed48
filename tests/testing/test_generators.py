"""The generators of random programs: the same seed gives the same program, of the kind that the generator promises."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from relaylang.ir import Expr, IRModule, structural_equal
from relaylang.syntax import parse
from relaylang.testing.generators.any_ir import AnyPrograms
from relaylang.testing.generators.branches import Branches
from relaylang.testing.generators.functional import Functional
from relaylang.testing.generators.graphs import Effects, Graphs, effectful
from relaylang.testing.generators.layouts import Networks
from relaylang.testing.generators.mutants import mutant
from relaylang.testing.generators.programs import Programs
from relaylang.testing.generators.shapes import Program
from relaylang.testing.generators.typed import PRELUDE, Typed
from relaylang.testing.hostile import TEXTS
from relaylang.testing.roundtrip import formats_once, reads_back
from relaylang.typing import infer

WELL_TYPED: dict[str, Callable[[int], IRModule | Expr]] = {
    "programs": lambda seed: Programs(seed).module(),
    "shapes": lambda seed: Program(seed, 12).function,
    "graphs": lambda seed: Graphs(seed).function(),
    "effects": lambda seed: Effects(seed).function(),
    "branches": lambda seed: Branches(seed, "conv2d").module(),
    "layouts": lambda seed: Networks(seed).module(),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WELL_TYPED)
def test_programs_are_well_typed_and_made_again_from_their_seed(name: str, seed: int) -> None:
    made = WELL_TYPED[name](seed)
    assert [d.title for d in infer(made, fragment=not isinstance(made, IRModule)) if d.severity == "error"] == []
    assert structural_equal(made, WELL_TYPED[name](seed))
    assert not structural_equal(made, WELL_TYPED[name](seed + 10))


@pytest.mark.parametrize("seed", range(5))
def test_programs_of_any_node_are_printed_and_read(seed: int) -> None:
    made = AnyPrograms(random.Random(seed)).module()
    printed, again = reads_back(made)
    assert structural_equal(made, again)
    formats_once(printed)


@pytest.mark.parametrize("seed", range(3))
def test_texts_are_programs(seed: int) -> None:
    made = parse(f"def @twice(%a) {{ %a }} def @main(%x, %y) {{ {effectful(seed)} }}").module
    assert made is not None and len(made.functions) == 2
    text = Functional(seed).text()
    assert text == Functional(seed).text() and parse(text).module is not None


@pytest.mark.parametrize("seed", range(6))
def test_texts_of_every_construct_are_well_typed(seed: int) -> None:
    text = Typed(seed).text()
    mod = parse(PRELUDE + text).module
    assert mod is not None and text == Typed(seed).text()
    assert [d.title for d in infer(mod) if d.severity == "error"] == []


def test_a_mutant_differs_by_a_few_tokens() -> None:
    text = TEXTS["many functions"](30)
    made = [mutant(random.Random(seed), text) for seed in range(40)]
    assert made == [mutant(random.Random(seed), text) for seed in range(40)]
    assert sum(m != text for m in made) > 30
    assert sorted(abs(len(m) - len(text)) for m in made)[20] < 40
