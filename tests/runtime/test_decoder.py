"""The decoder of examples/: compiled with a cache, it is the network without one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.vm import compile_vm
from relaylang.interpreter import Evaluator
from relaylang.ir.binding import bind_params

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "decoder"
TEXT = b"The compiler writes the rows."


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def scores(script: ModuleType) -> np.ndarray:
    """The scores behind each byte of `TEXT`, without a cache."""
    mod = relay.parse((FOLDER / "whole.relay").read_text())
    given = {**script.weights(), "tokens": np.frombuffer(TEXT, np.uint8).astype(np.int32)}
    found: np.ndarray = Evaluator(mod).call("main", [given[param.name_hint] for param in mod["main"].params])
    return found


def steps(session: object) -> np.ndarray:
    return np.stack([session.run(token=np.int32(t), position=np.int32(n)) for n, t in enumerate(TEXT)])  # type: ignore[attr-defined]


def test_steps_with_a_cache_give_the_scores_without(script: ModuleType, scores: np.ndarray) -> None:
    decoder = script.session()
    assert len(decoder._program._manifest.in_place) == 4  # all caches are written in place
    np.testing.assert_allclose(steps(decoder), scores, rtol=0, atol=1e-4)
    decoder.reset()
    np.testing.assert_allclose(steps(decoder), scores, rtol=0, atol=1e-4)


def test_the_vm_gives_the_same(script: ModuleType, scores: np.ndarray) -> None:
    mod = bind_params(relay.parse((FOLDER / "decoder.relay").read_text()), script.weights())
    np.testing.assert_allclose(steps(compile_vm(mod).session(script.STATE)), scores, rtol=0, atol=1e-4)


def test_the_network_has_learnt(scores: np.ndarray) -> None:
    """A byte takes 7 bits without knowledge."""
    shares = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    bits = -shares[np.arange(len(TEXT) - 1), np.frombuffer(TEXT, np.uint8)[1:]].mean() / np.log(2)
    assert bits < 3


def test_generated_text(script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    decoder = script.session()
    text = bytes(script.generate(decoder, b"The compiler", 40))
    assert len(text) == 40 and text == bytes(script.generate(decoder, b"The compiler", 40))
    chance = [bytes(script.generate(decoder, b"The", 40, 0.8, seed)) for seed in (1, 1, 2)]
    assert chance[0] == chance[1] != chance[2]
    assert len(bytes(script.generate(decoder, b"x" * 120, 40))) == 8  # the cache is full
    monkeypatch.setattr(sys, "argv", ["generate.py", "--prompt", "The compiler", "--count", "40"])
    assert script.main() == 0 and capsys.readouterr().out == f"The compiler{text.decode()}\n"
    monkeypatch.setattr(sys, "argv", ["generate.py", "--prompt", "x" * 128])
    with pytest.raises(SystemExit):
        script.main()
    assert "1 to 127 characters" in capsys.readouterr().err
