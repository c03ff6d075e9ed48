"""The pattern tables by the accelerators' names: the language's own, those of scripts, those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.targets import find_target, target_names
from relaylang.passes.manager import raised_in
from relaylang.plugins.entrypoints import TABLE_GROUP, installed_names, load_installed, wrong_plugin

Table = Callable[..., "Sequence[Entry | tuple]"]
#: The tables that scripts register, by the accelerator's name. They come before those of `relaylang.partition.targets`.
PATTERN_TABLES: dict[str, Table] = {}


def accelerators() -> list[str]:
    """The names of all accelerators but those of installed packages."""
    return list(dict.fromkeys([*target_names(), *PATTERN_TABLES]))


def register_pattern_table(compiler: str, table: Table | None = None) -> Any:
    """Add a table: `@register_pattern_table("my-npu")` on a function that returns rows `(name, pattern[, check])`."""
    if table is None:
        return partial(register_pattern_table, compiler)
    PATTERN_TABLES[compiler] = table
    return table


def get_pattern_table(compiler: str) -> list[Entry]:
    """The rows of an accelerator's table. Raises `RelayError` where there is none of that name."""
    own = find_target(compiler)
    table: Any = PATTERN_TABLES.get(compiler) or (own.pattern_table if own is not None else None)
    if table is None:
        table = load_installed(TABLE_GROUP, compiler)
        if table is not None and not callable(table):
            raise wrong_plugin(TABLE_GROUP, compiler, f"is no function, but a value of type {type(table).__name__}")
    if table is None:
        known = [*accelerators(), *installed_names(TABLE_GROUP)]
        near = did_you_mean(compiler, known)
        notes = [f"did you mean {near}?"] if near else [f"there are {', '.join(known)}"]
        raise RelayError(error("R0513", f"there is no accelerator {compiler}", notes=notes))
    try:
        rows = table()
    except RelayError:
        raise
    except (KeyboardInterrupt, MemoryError, SystemExit):
        raise
    except Exception as problem:
        raise RelayError(raised_in(compiler, problem, "the pattern table of")) from problem
    return as_entries(rows)


__all__ = ["PATTERN_TABLES", "accelerators", "get_pattern_table", "register_pattern_table"]
