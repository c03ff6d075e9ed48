"""Measures drawings of `relay viz` beside those of elkjs and dagre, of the same boxes and edges.

    npm install elkjs @dagrejs/dagre
    RELAY_SHARED=/path/to/shared python benchmarks/layout.py node_modules [--write]

Boxes have the sizes that `relay viz` gives them, unfolded and with weights as rows. Without `node_modules`, the tables
have relaylang's figures only. Each edge is measured from its box to its user, also where edges of one value share a line.
A crossing is a pair of edges of two values that meet at a point inside both. "Over boxes" counts edges that run over a
box. Times are those of the layout alone. They are the least of three runs, or one that takes more than ten seconds. `--write` puts the
tables into benchmarks/results/layout.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from machine import model

from relaylang.syntax import parse
from relaylang.typing import check
from relaylang.viz import graph_of
from relaylang.viz.boxes import Sheet, sheets
from relaylang.viz.graph import Graph
from relaylang.viz.layout import GAP, layout
from relaylang.viz.scene import ABOVE, BELOW, TRACK, Plans, scene_of

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "layout.md"
NETWORKS = ("mlp.typed", "lstm.fused", "resnet18.typed", "resnet18.simplified", "squeezenet.typed", "mobilenet.simplified")
SIZES = (1_000, 20_000)
#: The most calls whose crossings are counted, and the most seconds of a layout.
COUNTED, LONGEST = 2_000, 120
HEAD = ("tool", "time", "length", "bends", "crossings", "over boxes", "width × height")

ABOUT = """\
The same boxes and edges, laid out by relaylang in Python, and by the others in Node. A page of `relay viz` has the layouts
of all its functions. It lays out nothing itself, but moves boxes apart where one is unfolded. ELK's edges are orthogonal,
as here; dagre's are slanted, therefore shorter, and may run over boxes. Lengths are pixels. Each edge counts by itself, also
where edges of one value share a line. Times of other processes on the machine are in the figures."""

Point = tuple[float, float]


class Drawing(NamedTuple):
    """The seconds of a layout, the left upper corners of boxes, and the points of each edge."""

    seconds: float
    boxes: Sequence[Point]
    routes: Sequence[Sequence[Point]]


def blocks(calls: int) -> str:
    """A network of blocks with three branches of one to three calls, a sum, a product and a skip connection."""
    lines, last = [], "%x"
    for i in range(calls // 9):
        a, b, c, d, e, f, g, h, k = (f"%v{9 * i + n}" for n in range(9))
        lines += [f"{a} = nn.relu({last});", f"{b} = sigmoid({last});", f"{c} = nn.relu({b});", f"{d} = tanh({last});"]
        lines += [f"{e} = exp({d});", f"{f} = nn.relu({e});", f"{g} = add({a}, {c});", f"{h} = multiply({f}, {g});"]
        lines += [f"{k} = add({h}, {last});"]
        last = k
    return "def @main(%x: Tensor[(1, 8), float32]) {\n" + "\n".join(lines) + f"\n{last}\n}}\n"


def graph(text: str) -> Graph:
    mod = parse(text).module
    check(mod)
    return graph_of(mod)


def edges_of(sheet: Sheet) -> list[tuple[int, int]]:
    return [(source, user) for user, box in enumerate(sheet.boxes) for source in dict.fromkeys(e.source for e in box.edges)]


def ours(made: Graph, group: int) -> Drawing:
    """The layout of a function, and its lines joined to one route for each edge."""
    plans = Plans(made)
    sheet = plans.sheets[group]
    widths, inputs = [b.w for b in sheet.boxes], [[e.source for e in b.edges] for b in sheet.boxes]
    runs = []
    for _ in range(3):
        begin = time.perf_counter()
        layout(widths, inputs, [False] * len(widths))
        runs.append(time.perf_counter() - begin)
    scene = scene_of(plans)
    at = {p.key: n for n, p in enumerate(scene.boxes)}
    ends = {(line.start, line.points[-1]): line for line in scene.lines if not line.end}
    routes = {}
    for line in scene.lines:
        if line.end:
            points, first = list(line.points), line
            while (first.start, first.points[0]) in ends:
                first = ends[first.start, first.points[0]]
                points = [*first.points, *points]
            routes[at[line.start], at[line.end]] = points
    return Drawing(min(runs), [(p.x, p.y) for p in scene.boxes], [routes[edge] for edge in edges_of(sheet)])


def theirs(tool: str, modules: str, sheet: Sheet) -> Drawing | None:
    """The drawing of a tool from npm; None where it takes too long or fails."""
    given = {"boxes": [[b.w, b.h] for b in sheet.boxes], "edges": edges_of(sheet), "apart": GAP, "between": ABOVE + TRACK + BELOW}
    best: Drawing | None = None
    for _ in range(3):
        command = ["node", "--stack-size=60000", str(HERE / "layout.js"), tool, modules]
        try:
            done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            return None
        found = json.loads(done.stdout)
        if best is None or found["milliseconds"] < 1e3 * best.seconds:
            best = Drawing(found["milliseconds"] / 1e3, found["boxes"], found["routes"])
        if best.seconds > 10:
            break
    return best


def straight(points: Sequence[Point]) -> list[Point]:
    """The points at which a route turns, and its ends."""
    kept: list[Point] = []
    for p in points:
        if kept and abs(p[0] - kept[-1][0]) + abs(p[1] - kept[-1][1]) < 0.5:
            continue
        if len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2:]
            across = (bx - ax) * (p[1] - by) - (by - ay) * (p[0] - bx)
            if abs(across) < 0.5 * (abs(bx - ax) + abs(by - ay)):
                kept.pop()
        kept.append((p[0], p[1]))
    return kept


def measures(drawing: Drawing, sheet: Sheet) -> tuple[str, ...]:
    routes = [straight(r) for r in drawing.routes]
    length = sum(float(np.hypot(*np.diff(r, axis=0).T).sum()) for r in routes if len(r) > 1)
    bends = sum(max(0, len(r) - 2) for r in routes)
    right = max(x + b.w for (x, _), b in zip(drawing.boxes, sheet.boxes))
    low = max(y + b.h for (_, y), b in zip(drawing.boxes, sheet.boxes))
    xs, ys = [p[0] for r in routes for p in r], [p[1] for r in routes for p in r]
    left = min([*(x for x, _ in drawing.boxes), *xs])
    top = min([*(y for _, y in drawing.boxes), *ys])
    size = f"{max([right, *xs]) - left:.0f} × {max([low, *ys]) - top:.0f}"
    few = len(sheet.boxes) <= COUNTED
    crossed, over = counts(drawing, routes, sheet) if few else (-1, -1)
    return (f"{length:.0f}", str(bends), str(crossed) if few else "–", str(over) if few else "–", size)


def counts(drawing: Drawing, routes: list[list[Point]], sheet: Sheet) -> tuple[int, int]:
    """The crossings of edges of different values, and the edges that run over a box."""
    parts = [(n, a, b) for n, r in enumerate(routes) for a, b in pairwise(r)]
    owner = np.array([n for n, _, _ in parts])
    begin, end = np.array([a for _, a, _ in parts]), np.array([b for _, _, b in parts])
    source = np.array([s for s, _ in edges_of(sheet)])[owner]
    way = end - begin
    crossed = 0
    for i in range(len(parts) - 1):
        others = slice(i + 1, None)
        apart = begin[others] - begin[i]
        det = way[i, 0] * way[others, 1] - way[i, 1] * way[others, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (apart[:, 0] * way[others, 1] - apart[:, 1] * way[others, 0]) / det
            u = (apart[:, 0] * way[i, 1] - apart[:, 1] * way[i, 0]) / det
        inner = (t > 1e-6) & (t < 1 - 1e-6) & (u > 1e-6) & (u < 1 - 1e-6) & (np.abs(det) > 1e-9)
        crossed += int((inner & (source[others] != source[i])).sum())
    over = set()
    for (x, y), b in zip(drawing.boxes, sheet.boxes):
        low, high = np.array([x + 1, y + 1]), np.array([x + b.w - 1, y + b.h - 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            t0, t1 = (low - begin) / way, (high - begin) / way
            still = (way == 0) & ((begin < low) | (begin > high))
            near = np.where(way == 0, -np.inf, np.minimum(t0, t1)).max(axis=1)
            far = np.where(way == 0, np.inf, np.maximum(t0, t1)).min(axis=1)
        over |= set(owner[~still.any(axis=1) & (np.maximum(near, 0) < np.minimum(far, 1))].tolist())
    return crossed, len(over)


def tools(modules: str) -> str:
    """The tools with their versions."""
    found = [json.loads((Path(modules) / name / "package.json").read_text()) for name in ("elkjs", "@dagrejs/dagre")]
    return " and ".join(f"{made['name']} {made['version']}" for made in found)


def table(name: str, made: Graph, modules: str | None) -> list[str]:
    group = next(g.id for g in made.roots() if g.label == "@main")
    sheet = sheets(made)[group]
    rows = [HEAD]
    for tool in ("relay viz", *(("elk", "dagre") if modules else ())):
        drawing = ours(made, group) if tool == "relay viz" else theirs(tool, str(modules), sheet)
        if drawing is None:
            rows.append((tool, f"none in {LONGEST} s", *[""] * 5))
        else:
            rows.append((tool, f"{1e3 * drawing.seconds:.0f} ms", *measures(drawing, sheet)))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" + "|---:" * (len(HEAD) - 1) + "|")
    return [f"{name}: {len(sheet.boxes)} boxes, {len(edges_of(sheet))} edges", "", *lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="?", help="the folder node_modules with elkjs and @dagrejs/dagre")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/layout.md")
    given = parser.parse_args()
    shared = Path(os.environ.get("RELAY_SHARED", "../shared")) / "golden"
    texts = {name: path.read_text() for name in NETWORKS if (path := shared / f"{name}.relay").exists()}
    texts |= {f"{size} calls": blocks(size) for size in SIZES}
    lines = []
    for name, text in texts.items():
        found = table(name, graph(text), given.modules)
        print("\n".join(found), flush=True)
        lines += found
    if given.write:
        again = "`python benchmarks/layout.py node_modules --write` repeats the measurement."
        head = ["# Layouts", "", f"{model()}. {again}", "", ABOUT, ""]
        head += [f"Compared with {tools(given.modules)}."] * bool(given.modules) + [""] * bool(given.modules)
        RESULTS.write_text("\n".join([*head, *lines]).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
