"""AnnotateSpans: set each node's span to its place in the printed program."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.passes.manager import Pass
from relaylang.syntax import astext, parse
from relaylang.typing import check


def annotate_spans(mod: IRModule) -> IRModule:
    """The same program, read back from its own text: each node's span is its place there."""
    reread = parse(astext(mod), "GeneratedSource").module
    assert reread is not None
    check(reread)
    return reread


@dataclass(frozen=True)
class AnnotateSpans(Pass):
    """Set each node's span to its place in the printed program."""

    def run(self, mod: IRModule) -> IRModule:
        return annotate_spans(mod)
