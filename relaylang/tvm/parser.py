"""TVM's reader of text: `parse`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.ir import IRModule
from relaylang.stdlib.library import read


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[Any]] | None = None,
) -> IRModule:
    """The module that a text holds, unchecked; an expression becomes its @main. Raises `RelayError`.

    `init_module` holds definitions that the text may use, which come into the result. `init_meta_table` has the
    values of references such as `meta[relay.Constant][0]` that the text does not carry: type key -> values by number. A
    text whose head says `import "prelude.rly"` uses the Prelude.

    `relaylang.syntax.parse` returns the notes and the free variables too.
    """
    result = read(source, source_name, init_module, metadata=init_meta_table)
    if result.module is not None:
        return result.module
    assert result.expr is not None
    return IRModule.from_expr(result.expr)
