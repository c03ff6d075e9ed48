"""Paints measured times and the targets of a partition onto a graph."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.text import reason
from relaylang.viz.graph import REASON, Graph, Node

#: A place of a program without its directories.
Place = str


def paint_profile(graph: Graph, path: str | os.PathLike[str]) -> str:
    """Give nodes their times, from a file that `relay run --profile FILE` wrote. Returns what the graph does not show.

    The file is a trace or JSON, of compiled code or of the interpreter. Raises `RelayError` (R0001, R0771).
    """
    return _painted(path, "a profile of relay run", lambda record: _profile(graph, record))


def paint_partition(graph: Graph, path: str | os.PathLike[str]) -> str:
    """Give nodes their targets and the reasons of those that stay, from `relay partition --report-format json`.

    Returns what the graph does not show. Raises `RelayError` (R0001, R0771).
    """
    return _painted(path, "a report of relay partition --report-format json", lambda record: _partition(graph, record))


def _painted(path: str | os.PathLike[str], kind: str, paint: Callable[[Any], str]) -> str:
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except OSError as e:
        raise RelayError(error("R0001", f"cannot read {name}: {reason(e)}")) from None
    except (ValueError, RecursionError):
        raise RelayError(error("R0771", f"{name} is not {kind}: it is no JSON")) from None
    try:
        return paint(record)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RelayError(error("R0771", f"{name} is not {kind}")) from None


def _seconds(value: Any) -> float:
    """A time. Raises `ValueError` for others than numbers from 0."""
    seconds = float(value)
    if not 0 <= seconds < float("inf"):
        raise ValueError(value)
    return seconds


def _at(text: str) -> Place:
    """`dir/net.relay:3:5 name` as `net.relay:3:5`."""
    return os.path.basename(text.split(" ")[0])


def _by_place(graph: Graph) -> dict[Place, list[Node]]:
    nodes: dict[Place, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.place and node.kind in ("op", "call"):
            nodes[_at(node.place)].append(node)
    return nodes


def _profile(graph: Graph, record: dict[str, Any]) -> str:
    if "operators" in record:
        return _by_operator(graph, record["operators"])
    kernels = record["kernels"] if "kernels" in record else [_event(e) for e in record["traceEvents"] if e["cat"] != "function"]
    places = _by_place(graph)
    lost = 0.0
    for kernel in kernels:
        operators, seconds = str(kernel["operators"]), _seconds(kernel["seconds"])
        names = operators.split(" > ")
        node = _call_at(places, str(kernel["place"]), names)
        if node is None:
            lost += seconds
            continue
        node.seconds += seconds
        if len(names) > 1:
            node.notes.append(("kernel", operators))
        for place in kernel.get("others", ()):
            other = _call_at(places, str(place), names)
            if other is not None and other is not node and seconds >= other.shared:
                other.leader, other.shared = node.label, seconds
                other.notes.append(("kernel", f"{operators}; its time stands at {node.label}"))
        if "roofline" in kernel:
            node.notes.append(("roofline", f"{100 * float(kernel['roofline']):.0f} %, bound by {kernel['bound']}"))
    return f"{1e6 * lost:.4g} µs belong to no call of the program" if lost else ""


def _call_at(places: dict[Place, list[Node]], place: str, names: list[str]) -> Node | None:
    """The call at a place, of one of a kernel's operators where it can be."""
    near = places.get(_at(place), [])
    return next((n for n in near if n.label in names), near[0] if near else None)


def _event(event: dict[str, Any]) -> dict[str, Any]:
    """A trace's event as a kernel. Events of compiled code have its fields, those of the interpreter a place."""
    about = event["args"]
    if "place" in about:
        return {**about, "operators": event["name"], "seconds": float(event["dur"]) / 1e6}
    return {"operators": event["name"], "place": about["at"], "seconds": float(event["dur"]) / 1e6}


def _by_operator(graph: Graph, rows: Iterable[dict[str, Any]]) -> str:
    """A table by operators knows no places: each call gets the average of its operator."""
    calls: dict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.kind == "op":
            calls[node.label].append(node)
    for row in rows:
        there = calls[str(row["name"])]
        for node in there:
            node.seconds += _seconds(row["total"]) / len(there)
            if len(there) > 1:
                node.notes.append(("time", f"the average of {len(there)} calls"))
    return "the profile has no places: calls of one operator share its time (--profile-format trace has them)"


def _partition(graph: Graph, record: dict[str, Any]) -> str:
    target = str(record["target"])
    places = _by_place(graph)
    graph.partitioned = True
    rest = []
    for row in record["rows"]:
        near = [n for n in places.get(_at(row["place"]), ()) if n.label == row["call"] and not _has_fate(n)]
        if near:
            _give(near[0], row, target)
        else:
            rest.append(row)
    lost = 0
    for row in rest:  # calls that a pass made in the place of others
        near = [n for n in places.get(_at(row["place"]), ()) if not _has_fate(n)]
        if near and row["region"] is not None:
            _give(near[0], row, target)
        else:
            lost += 1
    return f"{lost} calls of the report are made by passes, and have no box" if lost else ""


def _has_fate(node: Node) -> bool:
    return bool(node.target) or any(name == REASON for name, _ in node.notes)


def _give(node: Node, row: dict[str, Any], target: str) -> None:
    """Give a node the target of a report's row, or the reason why it stays."""
    if row["region"] is None:
        node.notes.append((REASON, f"{row['pattern']}: {row['reason']}" if row["pattern"] else str(row["reason"])))
        return
    node.target = target
    node.notes.append(("goes to", str(row["region"])))
    node.notes += [("composite", str(row["composite"]))] * bool(row["composite"])


__all__ = ["paint_partition", "paint_profile"]
