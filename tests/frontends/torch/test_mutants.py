"""Graphs with changed names and numbers: each is read, or refused with a diagnostic."""

from __future__ import annotations

import io
import json
import random
import zipfile
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
from relaylang.frontends.options import Options  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, pt2, real  # noqa: E402
from tests.frontends.torch.test_control import branches, running, until_large  # noqa: E402
from tests.frontends.torch.test_memory import base_of_a_view, parts  # noqa: E402

GRAPHS: dict[str, Any] = {
    "branches": (branches, (real(2, 3),)),
    "until_large": (until_large, (real(2, 3),)),
    "running": (running, (real(3), real(4, 3))),
    "views": (base_of_a_view, (real(2, 3, 4),)),
    "parts": (parts, (real(2, 3, 4),)),
}
ODD = [-1, 0, 7, 10**12, -(2**63), "x", None, True, [], {}]


def leaves(tree: Any) -> list[tuple[Any, Any]]:
    """Each place of a JSON value: its container and its key."""
    found, stack = [], [tree]
    while stack:
        at = stack.pop()
        for key, value in list(at.items() if isinstance(at, dict) else enumerate(at)):
            found.append((at, key))
            if isinstance(value, (dict, list)):
                stack.append(value)
    return found


def mutant(data: bytes, rng: random.Random) -> bytes:
    """The archive with some values of its graph replaced or removed."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    name = next(n for n in archive.namelist() if "/models/" in n and n.endswith(".json"))
    tree = json.loads(archive.read(name))
    places = leaves(tree["graph_module"])
    plain = [holder[key] for holder, key in places if not isinstance(holder[key], (dict, list))]
    for holder, key in rng.sample(places, rng.randint(1, 3)):
        if key in holder if isinstance(holder, dict) else key < len(holder):
            if rng.random() < 0.2:
                del holder[key]
            else:
                holder[key] = rng.choice(plain if rng.random() < 0.8 else ODD)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for member in archive.namelist():
            made.writestr(member, json.dumps(tree).encode() if member == name else archive.read(member))
    return out.getvalue()


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_mutant_is_read_or_refused(name: str, partial: bool) -> None:
    function, inputs = GRAPHS[name]
    data, rng = pt2(Call(function), inputs), random.Random(7)
    for _ in range(60):
        try:
            import_pytorch(mutant(data, rng), Options(partial=partial))
        except RelayError as said:
            assert said.diagnostics
