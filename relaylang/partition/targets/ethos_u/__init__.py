"""The Arm Ethos-U: its pattern table, what its composites compute, and how a program is partitioned for it."""

from relaylang.partition.naming import PLAIN_NAMES
from relaylang.partition.recipe import Recipe
from relaylang.partition.targets.ethos_u.table import HELPERS, pattern_table

RECIPE = Recipe(
    "ethos-u",
    search="calls",
    constants_inside=True,
    tuples="users",
    merge="early",
    outputs="computed",
    unfold=True,
    helpers=HELPERS,
    not_worth="a region that only moves or limits values is not worth its transfers",
    naming=PLAIN_NAMES,
    integers=True,
)

__all__ = ["RECIPE", "pattern_table"]
