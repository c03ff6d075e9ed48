"""Weight streams: what Arm's encoder writes is read back, and damaged streams are refused."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from relaylang.backends.ethosu.simulator.codec import Damaged, decode
from relaylang.backends.ethosu.simulator.fast_codec import decode_fast

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


@pytest.mark.sweep
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


class Encoded(ctypes.Structure):
    """The result of Arm's encoder: the content, its bytes, and what it read."""

    _fields_ = (
        ("data", ctypes.POINTER(ctypes.c_uint8)),
        ("length", ctypes.c_int32),
        ("read", ctypes.c_int32),
        ("sections", ctypes.c_void_p),
        ("section_count", ctypes.c_int32),
    )


def encode_fast(weights: np.ndarray) -> bytes:
    """The fast form by the encoder inside of Vela."""
    library = ctypes.CDLL(pytest.importorskip("ethosu.regor").__file__)
    library.mle_create_context.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.mle_create_context(2))
    result = Encoded()
    values = np.ascontiguousarray(weights, np.int16)
    library.mle_encode(context, ctypes.byref(result), values.ctypes.data_as(ctypes.c_void_p), len(values), 0)
    content = ctypes.string_at(result.data, result.length)
    library.mle_free(ctypes.byref(result))
    library.mle_destroy_context(context)
    return content


@pytest.mark.parametrize("low", [-255, -200, -128, 0])
@pytest.mark.parametrize("kinds", [1, 3, 4, 5, 16, 17, 256])
def test_the_fast_form_is_read_back(kinds: int, low: int) -> None:
    rng = np.random.default_rng(kinds)
    weights = low + rng.integers(0, kinds, 1001)
    content = encode_fast(weights)
    assert len(content) % 32 == 0
    np.testing.assert_array_equal(decode_fast(content, 1001), weights)
    assert len(decode_fast(content[:64], 1001)) < 1001
    with pytest.raises(Damaged, match="its header has 20 bytes of 32"):
        decode_fast(content[:20], 1001)
