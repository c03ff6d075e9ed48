"""Whether a pass keeps what a program computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.cli.bisect import difference
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.passes.analysis import well_formed_problems
from relaylang.testing.generators.programs import inputs
from relaylang.typing import check, infer


def keeps_meaning(
    run: Callable[[IRModule], IRModule], mod: IRModule, seed: int = 0, entry: str = "main", same_inputs: bool = True
) -> IRModule:
    """Run a pass and check: the result is well-formed and well-typed, computes the same, the input is what it was."""
    check(mod)
    arguments: list[Any] = inputs(seed, mod[entry])
    before = evaluate(mod, *arguments, entry=entry)
    functions = dict(mod.functions)
    new = run(mod)
    assert dict(mod.functions) == functions
    assert well_formed_problems(new) == []
    wrong = [d for d in infer(new, fresh=True) if d.severity == "error"]
    assert wrong == [], "\n".join(map(str, wrong))
    said = difference(before, evaluate(new, *arguments, entry=entry))
    assert said is None, said
    return new
