"""The regions that annotations draw, as analyses of TVM list them: with the annotations themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, children, post_order
from relaylang.ops.record import Op


@dataclass(eq=False)
class AnnotatedRegion:
    """Nodes of one target. `args` are its begin annotations, `rets` its end annotations; `nodes` holds both, too."""

    id: int
    target: str
    args: list[Expr] = field(default_factory=list)
    rets: list[Expr] = field(default_factory=list)
    nodes: list[Expr] = field(default_factory=list)


class AnnotatedRegionSet:
    """The regions of an expression between calls of two operators, which have the attribute `compiler`.

    Raises `RelayError` (R0504) where regions of two targets touch without an annotation between them.
    """

    def __init__(self, expr: Expr, region_begin_op: Op, region_end_op: Op) -> None:
        self._of: dict[Expr, int] = {}
        self._merged: list[int] = []
        regions: list[AnnotatedRegion] = []
        for node in post_order(expr):
            op = node.op if isinstance(node, Call) else None
            if op is region_begin_op:
                assert isinstance(node, Call)
                number = len(regions)
                self._merged.append(number)
                regions.append(AnnotatedRegion(number, str(node.attrs.compiler), args=[node]))
            else:
                inner = (c for c in children(node) if not (isinstance(c, Call) and c.op is region_end_op))
                around = sorted({self._find(self._of[c]) for c in inner if c in self._of})
                if not around:
                    continue
                number = around[0]
                for other in around[1:]:
                    if regions[other].target != regions[number].target:
                        title = f"regions of {regions[number].target} and {regions[other].target} touch"
                        raise RelayError(error("R0504", title, node.span))
                    self._merged[other] = number
                    for name in ("args", "rets", "nodes"):
                        getattr(regions[number], name).extend(getattr(regions[other], name))
                if op is region_end_op:
                    regions[number].rets.append(node)
            self._of[node] = number
            regions[number].nodes.append(node)
        self._all = regions
        self.regions = [region for number, region in enumerate(regions) if self._find(number) == number]

    def _find(self, number: int) -> int:
        while self._merged[number] != number:
            self._merged[number] = self._merged[self._merged[number]]
            number = self._merged[number]
        return number

    def get_region(self, expr: Expr) -> AnnotatedRegion | None:
        """The region of a node; None for a node outside of all."""
        return self._all[self._find(self._of[expr])] if expr in self._of else None

    def __len__(self) -> int:
        return len(self.regions)

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter(self.regions)
