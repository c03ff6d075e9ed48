"""What a log says: a table of its kernels, and a picture (SVG) of the best time against the trials of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from relaylang.backends.cpu.tuning_log import Record, best, confirmed, frozen

#: The width and height of the picture, its margins (left, top, right, bottom), and the height of a line of the legend.
_SIZE = (760, 380)
_MARGIN = (56, 20, 16, 44)
_LINE = 18
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999")
#: The most letters of a kernel's name.
_NAME = 64


@dataclass(frozen=True)
class Row:
    """A kernel of a log, on one machine with a number of threads. Times are seconds.

    `curve` has the best ratio to the default's time after each trial.
    """

    key: str
    operators: str
    cpu: str
    threads: int
    count: int
    trials: int
    failures: int
    default: float | None
    best: float | None
    flops: int
    curve: tuple[float, ...]

    @property
    def gain(self) -> float | None:
        """How many times as fast as the default the best schedule is."""
        return self.default / self.best if self.default and self.best else None

    @property
    def gflops(self) -> float | None:
        return self.flops / self.best / 1e9 if self.flops and self.best else None

    @property
    def name(self) -> str:
        return self.operators if len(self.operators) <= _NAME else self.operators[: _NAME - 3] + "..."


def rows(records: Iterable[Record]) -> list[Row]:
    """The kernels of a log, those with the most time first."""
    groups: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record.key, record.cpu, record.threads), []).append(record)
    out = []
    for (key, cpu, threads), group in groups.items():
        default = next((r.seconds for r in reversed(group) if r.is_default and r.seconds), None)
        # Where only another machine of a farm measured the default alone: the least beside any candidate.
        default = default or min((r.seconds / r.ratio for r in group if r.seconds and r.ratio), default=None)
        tried = [r for r in group if not r.is_default]
        winner = best(group).get(key)
        ratio = winner.ratio if winner is not None and winner.ratio is not None else 1.0
        newest = group[-1]
        out.append(
            Row(
                key,
                newest.operators,
                cpu,
                threads,
                newest.count,
                len({frozen(r.choice) for r in tried}),
                sum(r.failure is not None for r in tried),
                default,
                default * ratio if default else None,
                newest.flops,
                curve(tried, ratio),
            )
        )
    return sorted(out, key=lambda row: (row.threads, -(row.default or 0.0) * row.count))


def curve(records: Sequence[Record], floor: float = 0.0) -> tuple[float, ...]:
    """The best ratio after each trial, by the most thorough measurement of each point.

    No ratio is below the `floor`, that of the best schedule: short measurements are lower by chance.
    """
    sure = {frozen(r.choice): r for r in confirmed(records)}
    out: list[float] = []
    low = 1.0
    for name in dict.fromkeys(frozen(r.choice) for r in records):
        record = sure[name]
        if record.failure is None and record.ratio is not None and (record.high or 1.0) < 1.0:
            low = min(low, max(record.ratio, floor))
        out.append(low)
    return tuple(out)


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.4g}"


def table(found: Sequence[Row]) -> str:
    """The kernels as a table, with the program's estimated time for each number of threads."""
    head = ("kernel", "runs", "threads", "trials", "failed", "default ms", "best ms", "gain", "GFLOP/s")
    lines: list[tuple[str, ...]] = [head]
    for row in found:
        gain, speed = row.gain, row.gflops
        lines.append(
            (
                f"{row.key} {row.name}",
                str(row.count),
                str(row.threads),
                str(row.trials),
                str(row.failures),
                _milliseconds(row.default),
                _milliseconds(row.best),
                f"{gain:.2f}" if gain else "",
                f"{speed:.4g}" if speed else "",
            )
        )
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    shown = [
        "  ".join(cell.ljust(width) if n == 0 else cell.rjust(width) for n, (cell, width) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    ]
    for threads in dict.fromkeys(row.threads for row in found):
        rows_of = [row for row in found if row.threads == threads]
        before = sum((row.default or 0.0) * row.count for row in rows_of)
        after = sum((row.best or 0.0) * row.count for row in rows_of)
        faster = f", {before / after:.2f} times as fast" if after else ""
        plural = "s" * (threads != 1)
        shown.append(
            f"all kernels, {threads} thread{plural}: {_milliseconds(before)} ms before, {_milliseconds(after)} ms after{faster}"
        )
    return "\n".join(shown)


def svg(found: Sequence[Row]) -> str:
    """The best time against trials, a line for each kernel with trials. The vertical axis is the time beside the default's."""
    drawn = [row for row in found if row.curve]
    width, height = _SIZE
    left, top, right, bottom = _MARGIN
    total = height + _LINE * len(drawn)
    most = max((len(row.curve) for row in drawn), default=1)
    low = min((min(row.curve) for row in drawn), default=1.0)
    floor = max(0.0, (int(low * 10) - 1) / 10)

    def x(trial: float) -> float:
        return left + (width - left - right) * trial / most

    def y(ratio: float) -> float:
        return top + (height - top - bottom) * (1.0 - ratio) / (1.0 - floor)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" width="{width}" height="{total}" role="img" '
        f'font-family="sans-serif" font-size="12">',
        "<title>The best time against trials</title>",
        f'<rect width="{width}" height="{total}" fill="#ffffff"/>',
    ]
    for step in range(round((1.0 - floor) * 10) + 1):
        ratio = floor + step / 10
        out.append(f'<path d="M{left} {y(ratio):.1f}H{width - right}" stroke="#dddddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:.1f}</text>')
    for part in range(5):
        trial = round(most * part / 4)
        out.append(f'<text x="{x(trial):.1f}" y="{height - bottom + 18}" text-anchor="middle">{trial}</text>')
    out.append(f'<text x="{width - right}" y="{height - 8}" text-anchor="end">trials</text>')
    out.append(f'<text x="{left}" y="{top - 6}">best time / default time</text>')
    for number, row in enumerate(drawn):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [f"M{x(0):.1f} {y(1.0):.1f}"]
        before = 1.0
        for trial, ratio in enumerate(row.curve, 1):
            points.append(f"H{x(trial):.1f}" + (f"V{y(ratio):.1f}" if ratio != before else ""))
            before = ratio
        out.append(f'<path d="{"".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        line = height + _LINE * number
        out.append(f'<path d="M{left} {line}h24" stroke="{colour}" stroke-width="2"/>')
        label = f"{row.name}, {row.threads} thread{'s' * (row.threads != 1)}"
        out.append(f'<text x="{left + 32}" y="{line + 4}">{escape(label)}: {row.curve[-1]:.2f}</text>')
    return "\n".join([*out, "</svg>", ""])


__all__ = ["Row", "curve", "rows", "svg", "table"]
