"""A graph for a terminal: a line for each call, and lanes at its left for values with later uses.

    ●    %0 = nn.conv2d(%data, %w1, padding=[1, 1, 1, 1]) : Tensor[(1, 16, 32, 32), float32]
    ├─●  %1 = nn.relu(%0) : Tensor[(1, 16, 32, 32), float32]
    ●─╯  %2 = add(%0, %1) : Tensor[(1, 16, 32, 32), float32]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def as_text(graph: Graph, width: int = 100, expand: bool = False, ascii_only: bool = False) -> str:
    """The graph's global functions, one after the other. It cuts lines at `width` columns.

    `expand` shows the bodies of fused and composite functions; `ascii_only` draws without box characters.
    """
    by_group: dict[int, list[Node]] = {}
    for node in graph.nodes:
        by_group.setdefault(node.group, []).append(node)
    lines: list[str] = []
    stack: list[tuple[Group, int]] = [(g, 0) for g in reversed(graph.roots())]
    shown: set[int] = set()
    while stack:
        group, depth = stack.pop()
        if group.id in shown:
            continue
        shown.add(group.id)
        own = by_group.get(group.id, [])
        indent = "  " * min(depth, 8)
        params = ", ".join(_with_type(graph.nodes[i]) for i in group.params)
        attrs = "".join(f", {k}={v}" for k, v in group.attrs)
        lines.append(f"{indent}{group.label}({params}{attrs})")
        lines += [indent + "  " + line for line in _group(graph, group, own)]
        lines.append("")
        inner = [graph.groups[n.inner] for n in own if n.inner >= 0 and (expand or n.kind == "fn" or n.label == "fn")]
        stack += [(g, depth + 1) for g in reversed(inner)]
    text = "\n".join(_cut(line.rstrip(), width) for line in lines).rstrip("\n") + "\n"
    return text.translate(_PLAIN) if ascii_only else text


_PLAIN = str.maketrans({**dict.fromkeys("├┤┼╯╰┴╮╭┬", "+"), "─": "-", "│": "|", "●": "o", "…": "~"})


def _with_type(node: Node) -> str:
    return f"{node.label}: {node.type}" if node.type else node.label


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width or width < 2 else line[: width - 1] + "…"


def _group(graph: Graph, group: Group, own: Sequence[Node]) -> Iterator[str]:
    """The lines of one function's calls."""
    mine = [n for n in own if n.kind not in _LEAVES]
    ids = {n.id for n in mine}
    uses: dict[int, int] = {}
    for node in mine:
        for i in node.inputs:
            uses[i] = uses.get(i, 0) + 1
    names: dict[int, str] = {}
    count = 0
    for node in mine:
        names[node.id] = f"%{node.name}" if node.name else f"%{count}"
        count += not node.name
    lanes: list[int | None] = []
    rows: list[tuple[str, str]] = []
    for node in mine:
        inputs = list(dict.fromkeys(i for i in node.inputs if i in ids and i in lanes))
        for i in node.inputs:
            uses[i] -= 1
        picture = _row(lanes, node.id, inputs, [i for i in inputs if not uses[i]], keep=uses.get(node.id, 0) > 0)
        rows.append((picture, _says(graph, node, names)))
    wide = min(2 * _MOST_LANES, max((len(p) for p, _ in rows), default=0))
    for picture, says in rows:
        if len(picture) > wide:
            picture = picture[: wide - 1] + "…"
        yield f"{picture:<{wide}}  {says}"
    if group.result >= 0:
        result = graph.nodes[group.result]
        if result.kind in _LEAVES:
            yield f"{'':<{wide}}  {_with_type(result)}"


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


def _says(graph: Graph, node: Node, names: dict[int, str]) -> str:
    """`%2 = add(%0, %1) : Tensor[...]`"""
    inputs = [names.get(i) or graph.nodes[i].label for i in node.inputs]
    attrs = [f"{k}={v}" for k, v in node.attrs[: len(node.attrs) - node.hidden]]
    own = names[node.id]
    ty = f" : {node.type}" if node.type else ""
    if node.kind == "tuple":
        return f"{own} = ({', '.join(inputs)}{',' * (len(inputs) == 1)}){ty}"
    if node.kind == "item":
        return f"{own} = {''.join(inputs)}{node.label}{ty}"
    if node.kind == "fn":
        return f"{own} = {node.label}{ty}"
    label = f"[{node.label}]" if node.inner >= 0 else node.label
    shown = inputs + (attrs if node.kind == "op" else [])
    return f"{own} = {label}({', '.join(shown)}){ty}"
