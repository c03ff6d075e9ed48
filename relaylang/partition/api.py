"""Programs partitioned for accelerators by name.

Usage:

    ready = prepare(mod, "cmsis-nn", params)
    print(table_text(explain(ready, partition(ready, "cmsis-nn"), "cmsis-nn"), "cmsis-nn"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params
from relaylang.partition.engine import Outcome, run
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.lets import effects_of, place_lets
from relaylang.partition.tables import get_pattern_table
from relaylang.partition.targets import recipe_of
from relaylang.passes.context import PassContext
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Sequential
from relaylang.passes.rewriting import per_function
from relaylang.passes.spec import parse_passes


def prepare(mod: IRModule, target: str, params: Mapping[str, Any] | None = None) -> IRModule:
    """The module as partitioning for a target takes it: parameters bound, constants folded, lets without effects put in
    place."""
    with PassContext(opt_level=4):
        passes = parse_passes(recipe_of(target).prepare)
        ready = Sequential([InferType(), *passes, InferType()])(bind_params(mod, params))
    effects = effects_of(ready)
    return per_function(ready, lambda func: place_lets(func, effects))


def partition(
    mod: IRModule,
    target: str,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
    table: Sequence[Entry | tuple] | None = None,
    prune: bool = True,
) -> IRModule:
    """A module with what an accelerator takes in functions of their own, which are marked for it.

    `table` replaces the target's own. With `prune` regions without a product go back to the host, where the
    target's recipe asks for products. Raises `RelayError` for an unknown target and an ill-typed module.
    """
    rows = get_pattern_table(target) if table is None else as_entries(table)
    return partition_ready(prepare(mod, target, params), target, rows, mod_name, prune).module


def partition_ready(mod: IRModule, target: str, rows: Sequence[Entry], mod_name: str = "default", prune: bool = True) -> Outcome:
    """A prepared module partitioned by a table's rows, with what became of its calls."""
    with PassContext(opt_level=4):
        return run(mod, rows, recipe_of(target), prefix=f"tvmgen_{mod_name}_", prune=prune)


__all__ = ["partition", "partition_ready", "prepare"]
