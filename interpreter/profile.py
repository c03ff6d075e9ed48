"""Where a program's time goes: a table by operator, and a file for Chrome's trace viewer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from relaylang.interpreter.code import Code, Slots
from relaylang.interpreter.values import is_tensor, value_type
from relaylang.interpreter.watch import Site, Watch, place


@dataclass
class Row:
    """The cost of one operator: calls, seconds in all and at most, bytes of its results."""

    name: str
    calls: int = 0
    total: float = 0.0
    most: float = 0.0
    bytes: int = 0


class Profile(Watch):
    """Adds up what operators take. `rows()` is the table, `chrome_trace()` the text for `chrome://tracing` or Perfetto.

    The trace holds each operator's call and each function's, the first `most` of them.
    """

    def __init__(self, events: bool = False, most: int = 1_000_000) -> None:
        self.by_name: dict[str, Row] = {}
        self.begin = perf_counter()
        self.most = most
        self.events: list[tuple[Any, ...]] | None = [] if events else None
        self.open: list[tuple[str, float]] = []

    def entered(self, code: Code, slots: Slots) -> None:
        if self.events is not None:
            self._close(len(self.stack), perf_counter())
            self.open.append((code.name, perf_counter()))

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        if not site.is_op:
            return
        name = site.what
        row = self.by_name.get(name)
        if row is None:
            row = self.by_name[name] = Row(name)
        row.calls += 1
        row.total += seconds
        row.most = max(row.most, seconds)
        value = slots[site.into]
        if is_tensor(value):
            row.bytes += value.nbytes
        if self.events is not None:
            begin = perf_counter() - seconds
            self._close(len(self.stack) + 1, begin)
            if len(self.events) < self.most:
                self.events.append((name, begin, seconds, site, value_type(value)))

    def _close(self, depth: int, now: float) -> None:
        """The functions deeper than this have returned by now, or have been left by a call in their place."""
        assert self.events is not None
        while len(self.open) > depth:
            name, begin = self.open.pop()
            if len(self.events) < self.most:
                self.events.append((name, begin, now - begin, None, ""))

    def rows(self) -> list[Row]:
        """The operators, the costliest first."""
        return sorted(self.by_name.values(), key=lambda r: -r.total)

    def table(self, elapsed: float | None = None) -> str:
        """The table as text; `elapsed` seconds are those of the whole evaluation."""
        rows = self.rows()
        spent = sum(r.total for r in rows)
        total = elapsed if elapsed is not None and elapsed > spent else spent
        width = max([len(r.name) for r in rows] + [len("between operators")])
        lines = [f"{'operator':<{width}} {'calls':>8} {'total ms':>10} {'share':>6} {'mean us':>10} {'most us':>10} {'MB':>9}"]
        for r in rows:
            lines.append(
                f"{r.name:<{width}} {r.calls:>8} {1e3 * r.total:>10.3f} {_share(r.total, total):>6} "
                f"{1e6 * r.total / r.calls:>10.1f} {1e6 * r.most:>10.1f} {r.bytes / 1e6:>9.3f}"
            )
        if total > spent:
            lines.append(f"{'between operators':<{width}} {'':>8} {1e3 * (total - spent):>10.3f} {_share(total - spent, total):>6}")
        calls = sum(r.calls for r in rows)
        lines.append(f"{'all':<{width}} {calls:>8} {1e3 * total:>10.3f} {_share(total, total):>6}")
        return "\n".join(lines)

    def json(self) -> str:
        """The table as JSON, times in seconds."""
        return json.dumps({"operators": [asdict(row) for row in self.rows()]}, indent=1)

    def chrome_trace(self) -> str:
        """The events as JSON, times in microseconds from the start."""
        if self.events is None:
            self.events = []
        self._close(0, perf_counter())
        records = []
        for name, begin, seconds, site, says in sorted(self.events, key=lambda e: (e[1], -e[2])):
            event: dict[str, Any] = {
                "name": name,
                "cat": "operator" if site is not None else "function",
                "ph": "X",
                "ts": round(1e6 * (begin - self.begin), 3),
                "dur": round(1e6 * seconds, 3),
                "pid": 1,
                "tid": 1,
            }
            if site is not None:
                event["args"] = {
                    "binding": f"%{site.variable.name_hint}",
                    "type": says,
                    "in": site.code.name,
                    "at": place(site.node.span),
                }
            records.append(event)
        return json.dumps({"traceEvents": records, "displayTimeUnit": "ms"})


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.1f}%" if total else "-"
