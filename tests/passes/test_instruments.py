"""Instruments: times, steps of `build`, and those that raise."""

from __future__ import annotations

from typing import Any

import pytest

import relaylang as relay
from relaylang.ir import IRModule
from relaylang.transform import (
    InferType,
    PassContext,
    PassTimingInstrument,
    pass_instrument,
)
from tests.passes.texts import module


def watcher(name: str, seen: list[str], fails: str = "") -> Any:
    class Watch:
        def enter_pass_ctx(self) -> None:
            seen.append(f"{name} in")
            if fails == "enter":
                raise ValueError(name)

        def exit_pass_ctx(self) -> None:
            seen.append(f"{name} out")
            if fails == "exit":
                raise ValueError(name)

    return pass_instrument(Watch)()


def test_instruments_that_raise_on_entry_roll_back() -> None:
    seen: list[str] = []
    context = PassContext(instruments=[watcher("a", seen), watcher("b", seen, "enter"), watcher("c", seen)])
    with pytest.raises(ValueError, match="b"), context:
        pass
    assert seen == ["a in", "b in", "a out"]
    assert context.instruments == [] and PassContext.current() is not context


def test_instruments_that_raise_on_exit_are_dropped() -> None:
    seen: list[str] = []
    context = PassContext(instruments=[watcher("a", seen), watcher("b", seen, "exit"), watcher("c", seen)])
    with pytest.raises(ValueError, match="b"), context:
        seen.clear()
    assert seen == ["a out", "b out"] and context.instruments == []
    context.override_instruments([watcher("d", seen, "exit")])
    with pytest.raises(ValueError, match="d"):
        context.override_instruments(None)
    assert context.instruments == []


def test_times_end_with_the_context() -> None:
    timing = PassTimingInstrument()
    mod = relay.parse("def @main(%x: int32) { add(%x, 1) }")
    with PassContext(instruments=[timing]):
        InferType()(mod)
        assert "InferType" in timing.render()
    assert timing.render() == ""


def test_build_shows_its_steps_to_instruments() -> None:
    names: list[tuple[str, str]] = []

    class Names:
        def run_before_pass(self, mod: IRModule, info: Any) -> None:
            names.append(("before", info.name))

        def run_after_pass(self, mod: IRModule, info: Any) -> None:
            names.append(("after", info.name))

    with PassContext(instruments=[pass_instrument(Names)()]):
        relay.build(module("def @main(%x: Tensor[(2), float32]) { exp(%x) }"))
    assert [n for when, n in names if when == "before"] == [n for when, n in names if when == "after"]
    assert ("before", "FuseOps") in names
