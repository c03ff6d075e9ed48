"""Every pass keeps the meaning of random programs."""

from __future__ import annotations

import pytest

from relaylang.testing.generators.programs import Programs
from relaylang.transform import PassContext, Sequential, Verify
from tests.passes.meaning import keeps_meaning
from tests.passes.texts import made

#: Passes that keep every program's meaning up to rounding, with options to try.
KEEPING = [
    "FoldConstant",
    "EliminateCommonSubexpr",
    "DeadCodeElimination",
    "DeadCodeElimination(inline_once=True)",
    "Inline",
    "RemoveUnusedFunctions",
    "SimplifyExpr",
    "CanonicalizeOps",
    "CanonicalizeCast",
    "DefuseOps",
    "EtaExpand",
    "EtaExpand(expand_global_var=True)",
    "LambdaLift",
    "DivToMul",
    "FoldExplicitPadding",
    "FlattenAtrousConv",
    "DynamicToStatic",
    "SplitArgs(3)",
    "AnnotateSpans",
    "SimplifyInference",
    "FuseOps",
    "ToANormalForm",
    "ToGraphNormalForm",
    "ToBasicBlockNormalForm",
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", KEEPING)
def test_random_programs_compute_the_same(name: str) -> None:
    with PassContext(opt_level=4):
        for seed in range(3):
            keeps_meaning(Sequential([made(name)]), Programs(seed).module(), seed)


def test_random_sequences_of_passes_compute_the_same() -> None:
    for seed in range(14):
        programs = Programs(1000 + seed)
        names = programs.rng.sample([n for n in KEEPING if n != "AnnotateSpans"], 5)
        with PassContext(opt_level=4, instruments=[Verify()]):
            keeps_meaning(Sequential([made(n) for n in names]), programs.module(10), seed)
