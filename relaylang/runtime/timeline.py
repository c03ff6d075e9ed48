"""What ran when: events of some units as a trace for Chrome's viewer, and as a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

#: The extents of the picture: all bars, a row, the names on the left; and the number of bars in a row.
_WIDTH, _ROW, _LEFT, _BARS = 960, 36, 80, 240


class Span(NamedTuple):
    """An event of a unit, from `begin` to before `end`. `group` and `facts` are for the trace."""

    name: str
    unit: str
    begin: float
    end: float
    group: str
    facts: Mapping[str, Any]


def chrome_trace(spans: Sequence[Span], units: Sequence[str] = ()) -> str:
    """A trace for `chrome://tracing` or Perfetto, times in microseconds: a row for each unit, with its name if there are more."""
    rows = {unit: {"pid": 1, "tid": number} for number, unit in enumerate(units)}
    events: list[dict[str, Any]] = [{"name": "thread_name", "ph": "M", **row, "args": {"name": unit}} for unit, row in rows.items()]
    for span in spans:
        times = {"ph": "X", "ts": span.begin, "dur": span.end - span.begin, **rows.get(span.unit, {"pid": 1, "tid": 1})}
        events.append({"name": span.name, "cat": span.group, **times, "args": dict(span.facts)})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def picture(title: str, spans: Sequence[Span], colours: Mapping[str, str], parts: Sequence[tuple[str, int]], total: int) -> str:
    """SVG: for each unit of `colours` the share of its time that it is busy, and below `parts`, texts and their times, in order."""
    height = (len(colours) + 1) * _ROW + 8
    size = f'width="{_LEFT + _WIDTH}" height="{height}" viewBox="0 0 {_LEFT + _WIDTH} {height}"'
    shapes = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">', f"<title>{escape(title)}</title>"]
    for number, (unit, colour) in enumerate(colours.items()):
        bottom = (number + 1) * _ROW
        shapes.append(f'<text x="4" y="{bottom - 8}" font-size="12">{unit}</text>')
        for bar, share in enumerate(_shares([span for span in spans if span.unit == unit], total)):
            if share > 0.005:
                tall = min(share, 1) * (_ROW - 6)
                shapes.append(_box(_LEFT + bar * _WIDTH / _BARS, bottom - tall, _WIDTH / _BARS, tall, colour))
    at, per = 0, _WIDTH / max(total, 1)
    for number, (text, time) in enumerate(parts):
        box = _LEFT + at * per, len(colours) * _ROW + 10, time * per, _ROW - 12
        shapes.append(_box(*box, "#dddddd" if number % 2 else "#bbbbbb", f"<title>{escape(text)}</title>"))
        at += time
    return "\n".join([*shapes, "</svg>"]) + "\n"


def _shares(spans: Sequence[Span], total: int) -> list[float]:
    """For each bar of the picture the share of its time that spans fill."""
    per, shares = max(total / _BARS, 1), [0.0] * _BARS
    for span in spans:
        first, last = int(span.begin / per), min(int(span.end / per), _BARS - 1)
        for bar in range(first, last + 1):
            shares[bar] += max(min(span.end, (bar + 1) * per) - max(span.begin, bar * per), 0) / per
    return shares


def _box(x: float, y: float, width: float, height: float, colour: str, inner: str = "") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}">{inner}</rect>'


__all__ = ["Span", "chrome_trace", "picture"]
