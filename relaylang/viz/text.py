"""A graph for a terminal: a line for each call, and lanes at its left for values with later uses.

Example:

    ●    %0 = nn.conv2d(%data, %w1, padding=[1, 1, 1, 1]) : 1×16×32×32
    ├─●  %1 = nn.relu(%0) : 1×16×32×32
    ●─╯  %2 = add(%0, %1) : 1×16×32×32
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from unicodedata import combining, east_asian_width

from relaylang.viz.boxes import EMPTY, SIGNS, Sheet, cut, sheets
from relaylang.viz.graph import Graph, Group, Node

#: More values than these at once are not drawn; the lines say what they use.
_MOST_LANES = 16
_CORNERS = {
    (True, True, False, True): "├",
    (True, True, True, False): "┤",
    (True, True, True, True): "┼",
    (True, False, True, False): "╯",
    (True, False, False, True): "╰",
    (True, False, True, True): "┴",
    (False, True, True, False): "╮",
    (False, True, False, True): "╭",
    (False, True, True, True): "┬",
    (False, False, True, True): "─",
}
#: Kinds of nodes that are shown where they are used, without a line of their own.
_LEAVES = frozenset({"var", "const", "callee"})
#: The terminal's colours of changes.
_CHANGES = {"added": 32, "removed": 31, "changed": 33}
#: So many lines stand before and behind each change.
_CONTEXT = 3

#: The lanes, the node, and its text.
_Line = tuple[str, Node | None, str]
#: The terminal's colours of families of operators.
_COLOURS = {"product": 34, "pool": 32, "norm": 35, "element": 31, "move": 33, "quantised": 93, "data": 36}


def as_text(graph: Graph, width: int = 80, expand: bool = False, ascii_only: bool = False, color: bool = False) -> str:
    """The graph's global functions, one after the other. It cuts lines at `width` columns.

    `expand` shows the bodies of fused and composite functions; `ascii_only` draws without box characters. `color` is for
    terminals: an operator's name has the colour of its family. A difference has a sign before each line, and shows the
    lines near changes.
    """
    drawn = sheets(graph)
    lines: list[str] = []
    stack: list[tuple[Group, int, str]] = [(g, 0, "") for g in reversed(graph.roots())]
    shown: set[int] = set()

    def line(text: str, name: str = "", family: str = "", change: str = "") -> None:
        text = SIGNS.get(change, "  ") + text if graph.compared else text
        text = _fitted(text.rstrip(), width) if width > 1 else text.rstrip()
        text = text.translate(_PLAIN) if ascii_only else text
        lines.append(_coloured(text, name, family, change) if color else text)

    while stack:
        group, depth, before = stack.pop()
        if group.id in shown:
            continue
        shown.add(group.id)
        indent = "  " * min(depth, 8)
        line(f"{indent}{before}{_head(graph, group)}", change=group.change)
        own = [n for n in (graph.nodes[b.node] for b in drawn[group.id].boxes if not b.pill) if n.kind not in _LEAVES]
        names = _names(own)
        rows = list(_group(graph, group, drawn[group.id], own, names))
        changed = {b.node: b.change for b in drawn[group.id].boxes}
        for place, skipped in _near(rows, changed) if graph.compared else zip(range(len(rows)), repeat(0)):
            if skipped:
                line(f"{indent}  ⋮ {skipped} {'line' if skipped == 1 else 'lines'}")
            if place < len(rows):
                picture, node, says = rows[place]
                text = f"{indent}  {picture}  {says}"
                line(text, *((node.label, node.family, changed[node.id]) if node is not None else ()))
        line("")
        for node in reversed(own):
            inside = [graph.groups[i] for i in node.inner]
            if expand or node.kind in ("fn", "if", "match", "repeat") or "fn" in (g.label for g in inside):
                stack += [(g, depth + 1, _title(node, names)) for g in reversed(inside)]
    return "\n".join(lines or [EMPTY]).rstrip("\n") + "\n"


def _coloured(text: str, name: str, family: str, change: str) -> str:
    """A line in the colour of its change, or with its operator's name in that of its family."""
    if change in _CHANGES:
        return f"\x1b[{_CHANGES[change]}m{text}\x1b[0m"
    if family in _COLOURS:
        return text.replace(f"= {name}(", f"= \x1b[{_COLOURS[family]}m{name}\x1b[0m(", 1)
    return text


def _head(graph: Graph, group: Group) -> str:
    """A function's name with its parameters and attributes, or another group's name."""
    if group.kind != "function":
        return f"{group.label}:"
    typed = ((node.label, node.shape or node.type) for node in map(graph.nodes.__getitem__, group.params))
    params = ", ".join(f"{label}: {ty}" if ty else label for label, ty in typed)
    attrs = "".join(f", {k}={v}" for k, v in group.attrs)
    return f"{group.label}({params}{attrs})"


def _title(node: Node, names: Mapping[int, str]) -> str:
    """The prefix of the name of a group inside a node."""
    if node.kind in ("if", "match"):
        return f"{names[node.id]} "
    if node.label == "fn":
        return f"{names[node.id]} = "
    return f"{node.label} = " if node.label[0] == "%" else ""


def _fitted(text: str, width: int) -> str:
    """A line in `width` columns. A call loses its last arguments before its type."""
    if _prefix(text, width) == text:
        return text
    call, end, ty = text.rpartition(") : ")
    if not end or len(ty) > width // 3:
        call, end, ty = text, "", ""
    rest = f"…{end}{ty}"
    return _prefix(call, width - sum(map(_columns, rest))) + rest


def _prefix(text: str, columns: int) -> str:
    """The letters of a text that fit in columns of a terminal."""
    if text.isascii():
        return text[: max(0, columns)]
    for at, letter in enumerate(text):
        columns -= _columns(letter)
        if columns < 0:
            return text[:at]
    return text


def _columns(letter: str) -> int:
    """The columns that a letter takes: ideographs take two, accents on their own none."""
    return 0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1


def _near(rows: Sequence[_Line], changed: dict[int, str]) -> Iterator[tuple[int, int]]:
    """The places of rows near a change, and the end. Each has the number of rows left out before it."""
    marked = [i for i, (_, node, _) in enumerate(rows) if node is not None and changed[node.id]]
    kept = sorted({i for m in marked for i in range(max(0, m - _CONTEXT), min(len(rows), m + _CONTEXT + 1))})
    behind = 0
    for place in (*kept, len(rows)):
        yield place, place - behind
        behind = place + 1


_PLAIN = str.maketrans({**dict.fromkeys("├┤┼╯╰┴╮╭┬", "+"), "─": "-", "│": "|", "●": "o", "…": "~", "×": "x", "⋮": ":", "−": "-"})


def _names(own: Sequence[Node]) -> dict[int, str]:
    names: dict[int, str] = {}
    count = 0
    for node in own:
        names[node.id] = f"%{node.name}" if node.name else f"%{count}"
        count += not node.name
    return names


def _group(graph: Graph, group: Group, sheet: Sheet, own: Sequence[Node], names: dict[int, str]) -> Iterator[_Line]:
    """The lines of one function's calls: the lanes, the node, and its text."""
    # what a node takes no more has no lane
    taken = {
        b.node: [sheet.boxes[e.source].node for e in b.edges if e.change != "removed" or graph.nodes[b.node].change == "removed"]
        for b in sheet.boxes
        if not b.pill
    }
    uses: dict[int, int] = {}
    for node in own:
        for i in taken[node.id]:
            uses[i] = uses.get(i, 0) + 1
    lanes: list[int | None] = []
    rows: list[tuple[str, Node, str]] = []
    for node in own:
        inputs = list(dict.fromkeys(i for i in taken[node.id] if i in names and i in lanes))
        for i in taken[node.id]:
            uses[i] -= 1
        picture = _row(lanes, node.id, inputs, [i for i in inputs if not uses[i]], keep=uses.get(node.id, 0) > 0)
        rows.append((picture, node, _says(graph, node, names)))
    wide = min(2 * _MOST_LANES, max((len(p) for p, _, _ in rows), default=0))
    for picture, node, says in rows:
        yield f"{cut(picture, wide):<{wide}}", node, says
    if group.result >= 0 and graph.nodes[group.result].id not in names:
        yield " " * wide, None, _operand(graph, group.result, names)


def _row(lanes: list[int | None], node: int, inputs: Sequence[int], ended: Sequence[int], keep: bool) -> str:
    """Draw one node and its inputs, and update the lanes."""
    before = list(lanes)
    places = [lanes.index(i) for i in inputs]
    free = [lanes.index(i) for i in ended]
    if free:
        at = min(free)
    elif None in lanes:
        at = lanes.index(None)
    else:
        at = len(lanes)
        lanes.append(None)
        before.append(None)
    for place in free:
        lanes[place] = None
    lanes[at] = node if keep else None
    left, right = min([at, *places]), max([at, *places])
    out: list[str] = []
    for i in range(len(before)):
        up, down = before[i] is not None, lanes[i] is not None
        joined = i in places
        across_left, across_right = left < i <= right, left <= i < right
        if i == at:
            out.append("●")
        elif joined:
            out.append(_CORNERS.get((up, down, across_left, across_right), "│"))
        elif up:
            out.append("│")
        else:
            out.append("─" if across_left and across_right else " ")
        out.append("─" if across_right else " ")
    while lanes and lanes[-1] is None:
        lanes.pop()
    return "".join(out).rstrip()


def _operand(graph: Graph, node: int, names: dict[int, str]) -> str:
    """An operand's name. A projection has its tuple's name and the way; a tuple without a line lists its fields."""
    path = ""
    while graph.nodes[node].kind == "item" and node not in names and graph.nodes[node].inputs:
        path = graph.nodes[node].label + path
        node = graph.nodes[node].inputs[0]
    value = graph.nodes[node]
    if value.kind == "tuple" and node not in names:
        fields = [names.get(i) or graph.nodes[i].label for i in value.taken]
        return f"({', '.join(fields)}{',' * (len(fields) == 1)})"
    return (names.get(node) or (f"%{value.name}" if value.name else value.label)) + path


def _says(graph: Graph, node: Node, names: dict[int, str]) -> str:
    """`%2 = add(%0, %1) : 1×3`"""
    inputs = [_operand(graph, i, names) for i in node.taken if graph.nodes[i].kind != "callee"]
    attrs = [f"{k}={v}" for k, v in node.attrs[: len(node.attrs) - node.hidden]]
    own = names[node.id]
    ty = node.shape or node.type
    ty = f" : {ty}" if ty else ""
    if node.kind == "tuple":
        return f"{own} = ({', '.join(inputs)}{',' * (len(inputs) == 1)}){ty}"
    if node.kind == "item":
        return f"{own} = {''.join(inputs)}{node.label}{ty}"
    if node.kind == "fn":
        return f"{own} = {node.label}{ty}"
    label = f"[{node.label}]" if node.inner and node.kind == "call" and not node.label.startswith(("@", "%")) else node.label
    shown = inputs + (attrs if node.kind == "op" else [])
    return f"{own} = {label}({', '.join(shown)}){ty}"
