"""The plan of a program's memory: values that are needed at once lie apart, and the arena is small."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.isa import BY_NAME
from relaylang.backends.cpu.memory import live_bytes, place
from relaylang.backends.cpu.program import Program, Run, Slot, walk
from relaylang.interpreter import evaluate
from relaylang.syntax import parse
from relaylang.typing import check
from tests.shared import SHARED, few


def slot(size: int, first: int, last: int) -> Slot:
    made = Slot("made", 0, (size,), "uint8")
    made.first, made.last = first, last
    return made


def lowered(text: str, bound: tuple[str, ...] = ()) -> Program:
    mod = parse('#[version = "0.0.5"]\n' + text).module
    assert mod is not None
    return lower_module(mod, "main", bound, BY_NAME["avx2"])


@pytest.mark.parametrize("count", few([0, 1, 5, 60, 450, 2000], 0, 1, 5, 60, 450))
def test_what_lives_at_once_lies_apart(count: int) -> None:
    pick = random.Random(count)
    slots = []
    for _ in range(count):
        first = pick.randrange(count)
        slots.append(slot(pick.choice([1, 64, 100, 5000, 70_000]), first, first + pick.choice([0, 1, 2, 3, 40])))
    total = place(slots)
    assert total >= live_bytes(slots)
    for n, one in enumerate(slots):
        assert 0 <= one.offset <= total - one.bytes and one.offset % 64 == 0
        for other in slots[:n]:
            apart = one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset
            assert apart or one.last < other.first or other.last < one.first


def test_an_order_by_size_alone_would_not_do() -> None:
    slots = [slot(640, 0, 1), slot(640, 3, 4), slot(512, 1, 2), slot(512, 2, 3), slot(128, 0, 4)]
    assert place(slots) == live_bytes(slots) == 1280


CHAIN = """def @main(%x: Tensor[(8, 300), float32], %w: Tensor[(300, 300), float32]) {
  %0 = nn.dense(%x, %w, units=300);
  %1 = nn.dense(%0, %w, units=300);
  %2 = add(%0, %1);
  %3 = nn.dense(%2, %w, units=300);
  add(%2, nn.dense(%3, %w, units=300))
}"""


def runs(program: Program) -> list[Run]:
    return [item for item in walk(program.run) if isinstance(item, Run)]


def values(text: str, *inputs: np.ndarray) -> tuple[Any, Any]:
    """What compiled code and the interpreter make of inputs."""
    mod = parse('#[version = "0.0.5"]\n' + text).module
    assert mod is not None
    check(mod)
    return compile_module(mod, "c -num-threads=2").run(*inputs), evaluate(mod, *inputs)


#: Element-wise kernels that are not fused with others, and the number of operands that they overwrite.
WRITTEN_OVER = {
    "by the last reader": ("%1 = cumsum(%x, axis=1); %2 = cumsum(tanh(%1), axis=1); cumsum(add(%2, %1), axis=0)", None),
    "a chain": ("%1 = cumsum(%x, axis=1); %2 = stop_fusion(tanh(%1)); %3 = stop_fusion(negative(%2)); cumsum(%3, axis=0)", 2),
    "twice read": ("%1 = cumsum(%x, axis=1); %2 = stop_fusion(multiply(%1, exp(%1))); cumsum(%2, axis=0)", 1),
    "read elsewhere": ("%1 = cumsum(%x, axis=1); %2 = stop_fusion(add(%1, reverse(%1, axis=1))); cumsum(%2, axis=0)", 0),
    "turned": ("%1 = cumsum(%x, axis=1); %2 = stop_fusion(transpose(%1, axes=[1, 0])); cumsum(%2, axis=0)", 0),
    "reshaped": ("%1 = cumsum(%x, axis=1); %2 = stop_fusion(exp(reshape(%1, newshape=[-1]))); cumsum(%2, axis=0)", 1),
    "needed later": ("%1 = cumsum(%x, axis=1); %2 = stop_fusion(tanh(%1)); add(cumsum(%2, axis=0), %1)", 0),
    "smaller elements": ('%1 = cumsum(%x, axis=1); %2 = stop_fusion(cast(%1, dtype="int8")); cumsum(%2, axis=0)', 0),
    "other elements of a size": ('%1 = cumsum(%x, axis=1); %2 = stop_fusion(cast(%1, dtype="int32")); cumsum(%2, axis=0)', 1),
    "spread": ("%1 = cumsum(%x, axis=1); %2 = stop_fusion(add(%1, max(%1, axis=[1], keepdims=True))); cumsum(%2, axis=0)", None),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", WRITTEN_OVER)
def test_a_value_is_overwritten_by_the_last_that_reads_it(case: str) -> None:
    body, count = WRITTEN_OVER[case]
    body = body.replace("stop_fusion(", "annotation.stop_fusion(")
    text = f"def @main(%x: Tensor[(40, 40), float32]) {{ {body} }}"
    program = lowered(text)
    found = 0
    for item in walk(program.run):
        places = {s.offset for s in item.outputs if s.kind == "made"}
        same = [s for s in item.reads() if s.kind == "made" and not s.fixed and s.offset in places]
        found += len({id(s) for s in same})
    if count is not None:
        assert found == count
    got, wanted = values(text, np.random.default_rng(0).uniform(-1, 1, (40, 40)).astype("f4"))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_overwriting_lowers_the_bound() -> None:
    body = WRITTEN_OVER["a chain"][0].replace("stop_fusion(", "annotation.stop_fusion(")
    program = lowered(f"def @main(%x: Tensor[(40, 40), float32]) {{ {body} }}")
    assert program.arena_bytes == program.live_bytes == 6400


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["dqn", "lstm", "mlp", "mobilenet", "resnet18", "resnet3d18", "squeezenet", "synthetic"])
def test_the_arena_of_networks_is_near_its_bound(name: str) -> None:
    path = SHARED / "golden" / f"{name}.typed.relay"
    if not path.is_file():
        pytest.skip(f"no shared data at {SHARED} (set RELAY_SHARED)")
    mod = parse(path.read_text()).module
    assert mod is not None
    program = lower_module(mod, "main", [p.name_hint for p in mod["main"].params[1:]], BY_NAME["avx2"])
    assert 0 < program.live_bytes <= program.arena_bytes <= 1.1 * program.live_bytes


def test_the_report_has_the_bound() -> None:
    mod = parse('#[version = "0.0.5"]\n' + CHAIN).module
    assert mod is not None
    made: Any = compile_module(mod, "c -cflags=-O0", {"w": np.ones((300, 300), "f4")})
    program = lowered(CHAIN, ("w",))
    run, live = (made.manifest[name] / 1e6 for name in ("arena", "live"))
    assert made.report().startswith(f"memory: {run:.3f} MB for a run ({live:.3f} MB in use at once), ")
    assert made.report().endswith(" of weights") and program.live_bytes <= made.manifest["live"] * 1.5
