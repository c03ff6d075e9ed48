"""InferType: infer the types of all nodes."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.typing import check


@dataclass(frozen=True)
class InferType(Pass):
    """Infer the types of all nodes, in place. Raises `RelayError`."""

    required = ()

    def run(self, mod: IRModule) -> IRModule:
        check(mod)
        return mod
