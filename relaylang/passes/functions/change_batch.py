"""ChangeBatch: give inputs another extent of one axis, and find the types of all that depends on them.

Usage:

    mod = ChangeBatch({"data": 0}, batch_size=8)(mod)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule, Var
from relaylang.passes.functions.flexible_shape_dispatch import with_extent
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import with_inputs
from relaylang.typing import check


@dataclass(frozen=True)
class ChangeBatch(Pass):
    """Give inputs another extent of one axis: `data` has the axis by parameter, or by its name.

    Attributes that state extents stay as they are; the checker reports those that do not fit. Raises `RelayError`: R0501
    for an input or an axis that is not there.
    """

    data: Mapping[Var | str, int]
    batch_size: int = 16

    def run(self, mod: IRModule) -> IRModule:
        functions, left = {}, dict(self.data)
        for gv, func in mod.functions.items():
            named = {p: key for p in func.params for key in (p, p.name_hint) if key in self.data}
            types = {p: with_extent(p.checked_type, self.data[key], self.batch_size) for p, key in named.items()}
            for key in named.values():
                left.pop(key, None)
            functions[gv] = with_inputs(func, types) if types else func
        if left:
            missing = next(iter(left))
            name = missing.name_hint if isinstance(missing, Var) else missing
            raise RelayError(error("R0501", f"ChangeBatch: no function has a parameter %{name}"))
        new = mod.with_functions(functions)
        check(new)
        return new
