"""VTA: how a program is partitioned for it. Its layers stand on the floor of the backends, with their code generator."""

from relaylang.partition.entries import Entry
from relaylang.partition.naming import PLAIN_NAMES
from relaylang.partition.recipe import Recipe
from relaylang.services import service

RECIPE = Recipe(
    "vta",
    search="calls",
    constants_inside=True,
    tuples="users",
    merge="early",
    outputs="computed",
    unfold=True,
    not_worth="a region that only limits values is not worth its transfers",
    naming=PLAIN_NAMES,
    integers=True,
)


def pattern_table() -> list[Entry]:
    """The rows for VTA in the configuration of TVM's `vta_config.json`, those that take most first."""
    entries: list[Entry] = service("layers of vta")()
    return entries


__all__ = ["RECIPE", "pattern_table"]
