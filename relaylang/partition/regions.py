"""Regions: which supported nodes go to the accelerator together.

Each node of the outermost scope gets a stage, even on the host and odd on the accelerator, never below that of its
inputs. Supported nodes of one stage that are connected form a region. A path that leaves a region through the host
comes back at a later stage, so regions never wait for each other in a circle, and one pass over the graph suffices.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from relaylang.ir import Call, Constant, Expr, Function, GlobalVar, Tuple, Var
from relaylang.ops.record import Op
from relaylang.partition.scope import dependencies, is_closed, scope_nodes, user_map

_NO_STAGE = (Constant, Var, Op, GlobalVar)


@dataclass
class Region:
    """Nodes for the accelerator, producers first; what they take from outside, and what others take from them."""

    nodes: list[Expr] = field(default_factory=list)
    inputs: list[Expr] = field(default_factory=list)
    outputs: list[Expr] = field(default_factory=list)


def stages(order: list[Expr], supported: Callable[[Expr], bool]) -> dict[int, int]:
    """The stage of each node by id: even on the host, odd on the accelerator. Leaves have none."""
    stage: dict[int, int] = {}
    here = {id(node) for node in order}
    for node in order:
        if isinstance(node, _NO_STAGE) or is_closed(node):
            continue
        least = max((stage.get(id(c), 0) for c in dependencies(node, here)), default=0)
        odd = supported(node)
        stage[id(node)] = least + 1 if (least % 2 == 1) != odd else least
    return stage


def form_regions(func: Function, supported: Callable[[Expr], bool]) -> list[Region]:
    """The regions of a function's outermost scope, in order of their first node.

    `supported` says which calls the accelerator takes. A tuple belongs to it where all of its users do.
    """
    order = scope_nodes(func.body)
    here = {id(node) for node in order}
    users = user_map(func.body)
    taken = {id(node) for node in order if isinstance(node, Call) and supported(node)}
    for node in order:
        if isinstance(node, Tuple) and node is not func.body and node.fields:
            if all(id(user) in taken for user in users.get(id(node), ())):
                taken.add(id(node))
    stage = stages(order, lambda node: id(node) in taken)
    leader: dict[int, int] = {}

    def find(key: int) -> int:
        while leader[key] != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    for node in order:
        if id(node) not in taken:
            continue
        leader[id(node)] = id(node)
        for child in dependencies(node, here):
            if id(child) in taken and stage[id(child)] == stage[id(node)]:
                leader[find(id(child))] = find(id(node))
    regions: dict[int, Region] = {}
    for node in order:
        if id(node) in taken:
            regions.setdefault(find(id(node)), Region()).nodes.append(node)
    for region in regions.values():
        _boundary(region, func.body, here, users)
    return list(regions.values())


def part_of(region: Region, calls: Sequence[Call]) -> Region:
    """Some calls of a region as one of their own, with the tuples that they take."""
    wanted = {id(call) for call in calls}
    wanted |= {id(a) for call in calls for a in call.args if isinstance(a, Tuple)} & {id(node) for node in region.nodes}
    part = Region([node for node in region.nodes if id(node) in wanted])
    part.inputs = _inputs(part.nodes, _operands)
    outside = {id(c) for node in region.nodes if id(node) not in wanted for c in _operands(node)}
    outside |= {id(node) for node in region.outputs}
    part.outputs = [node for node in part.nodes if id(node) in outside]
    return part


def _operands(node: Expr) -> Sequence[Expr]:
    return node.args if isinstance(node, Call) else node.fields if isinstance(node, Tuple) else ()


def _inputs(nodes: Sequence[Expr], operands: Callable[[Expr], Iterable[Expr]]) -> list[Expr]:
    """What nodes take that is none of them, constants and operators left out."""
    inside = {id(node) for node in nodes}
    found = {id(child): child for node in nodes for child in operands(node) if id(child) not in inside}
    return [child for child in found.values() if not isinstance(child, (Constant, Op))]


def _boundary(region: Region, body: Expr, here: set[int], users: dict[int, list[Expr]]) -> None:
    inside = {id(node) for node in region.nodes}
    for node in region.nodes:
        if node is body or any(id(user) not in inside for user in users.get(id(node), ())):
            region.outputs.append(node)
    region.inputs = _inputs(region.nodes, lambda node: dependencies(node, here))
