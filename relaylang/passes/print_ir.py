"""PrintIR: print the module between two passes."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.syntax import astext


@dataclass(frozen=True)
class PrintIR(Pass):
    """Print the module to stderr, below a header. `show_meta_data`: with the section of its constants."""

    header: str = ""
    show_meta_data: bool = False

    def run(self, mod: IRModule) -> IRModule:
        text = astext(mod, show_meta_data=self.show_meta_data)
        print(f"PrintIR({self.header}):\n{text}", file=sys.stderr)
        return mod
