"""Weight streams: what Arm's encoder writes is read back, and damaged streams are refused."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends.ethosu.simulator.codec import Damaged, decode

codec = pytest.importorskip("ethosu.mlw_codec", reason="needs relaylang[ethosu]")

KINDS = {
    "any": lambda rng, n: rng.integers(-255, 256, n),
    "normal": lambda rng, n: rng.normal(0, 20, n).clip(-127, 127),
    "sparse": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.integers(-127, 128, n)),
    "two": lambda rng, n: rng.integers(0, 2, n) * 7,
    "zero": lambda rng, n: np.zeros(n),
    "rows": lambda rng, n: np.repeat(rng.integers(-100, 100, n // 50 + 1), 50),
}


@pytest.mark.parametrize("kind", KINDS)
def test_streams_are_read_back(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for count in (1, 2, 15, 16, 100, 5000, 40_000):
        weights = KINDS[kind](rng, count).astype(int).tolist()
        assert decode(bytes(codec.encode(weights))) == weights


def test_streams_in_a_row() -> None:
    first, second = bytes(codec.encode([1, 2, 3])), bytes(codec.encode([-4, 0]))
    assert decode(first + second) == [1, 2, 3, -4, 0] and decode(b"") == []


def test_damage_is_found() -> None:
    rng = np.random.default_rng(1)
    whole = bytes(codec.encode(rng.normal(0, 20, 400).astype(int).tolist()))
    refused = 0
    for _ in range(2000):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(256)
        try:
            assert len(decode(bytes(damaged))) < 100_000
        except Damaged:
            refused += 1
    assert refused > 100
    with pytest.raises(Damaged):
        decode(whole[:40])
