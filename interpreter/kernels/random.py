"""Random numbers: Threefry-4x64 with 20 rounds, split as in "Splittable Pseudorandom Number Generators using
Cryptographic Hashing" (Claessen and Palka, 2013).

A key holds ten words. Four are the key proper, two the path of splits, two a counter, of which the second counts. The
last two are the place of the path's next bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, np_dtype

_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_PARITY = 0x1BD11BDAA9FC1A22
_MASK = 2**64 - 1


def threefry(key: Any, counter: Any, count: int) -> np.ndarray:
    """`count` blocks of four words: block i encrypts the counter with i added to each word."""
    words = [int(k) for k in key]
    words.append(_PARITY ^ words[0] ^ words[1] ^ words[2] ^ words[3])
    block = np.arange(count, dtype=np.uint64)
    x = [block + np.uint64(int(c)) for c in counter]
    with np.errstate(over="ignore"):
        for step in range(20):
            if step % 4 == 0:
                i = step // 4
                x = [w + np.uint64((words[(j + i) % 5] + (i if j == 3 else 0)) & _MASK) for j, w in enumerate(x)]
            left, right = _ROTATIONS[step % 8]
            x[:2] = _mix(x[0], x[1], left)
            x[2:] = _mix(x[2], x[3], right)
            x = [x[0], x[3], x[2], x[1]]
    return np.stack(x, axis=1)


def _mix(a: Any, b: Any, turn: int) -> list[Any]:
    """The paper's mixing, except for the second word: TVM computes it from the new first word."""
    total = a + b
    return [total, (total + b) ^ ((b << np.uint64(turn)) | (b >> np.uint64(64 - turn)))]


def _next_place(high: int, low: int) -> tuple[int, int]:
    """The path's next bit, one to the right."""
    if high == 1:
        return 0, 1 << 63
    return (0, low >> 1) if high == 0 else (high >> 1, 0)


def _key(words: Any) -> np.ndarray:
    return np.asarray([int(w) & _MASK for w in words], np.uint64)


def generate(key: Any, shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """The key to go on with, and random words."""
    size = int(np.prod(shape, dtype=np.int64))
    state = [int(k) for k in key]
    if state[7] >= _MASK - size:  # too few counts are left for `size` words
        if not state[8]:  # and the path, of which TVM tests the first word only
            state = [*threefry(key[:4], [_MASK] * 4, 1)[0], 0, 0, 0, 0, 1 << 63, 0]
        else:
            place = _next_place(state[8], state[9])
            state = [*state[:4], state[4] | state[8], state[5] | state[9], 0, 0, *place]
    blocks = threefry(state[:4], state[4:8], size // 4)
    words = blocks.ravel()
    if size % 4:
        state[7] += size // 4 * 4
        words = np.concatenate([words, threefry(state[:4], state[4:8], 1)[0][: size % 4]])
        state[7] += 4
    else:
        state[7] += size
    state[6] = 0
    return _key(state), words.reshape(shape)


def threefry_split(attrs: Any, key: Any) -> Any:
    """Two keys: the path goes on with 0 in the one, with 1 in the other."""
    state = [int(k) for k in key]
    if not state[8]:  # no room in the path, of which TVM tests the first word only
        fresh = list(threefry(state[:4], state[4:8], 1)[0])
        return _key([*fresh, 0, 0, 0, 0, 1 << 62, 0]), _key([*fresh, 1 << 63, 0, 0, 0, 1 << 62, 0])
    place = _next_place(state[8], state[9])
    right = [*state[:4], state[4] | state[8], state[5] | state[9], *state[6:8], *place]
    return _key([*state[:8], *place]), _key(right)


def _unit(key: Any, shape: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """Numbers from 0 to below 1: random fractions of a float between 1 and 2, less 1."""
    key, words = generate(key, shape)
    bits = np.dtype(f"uint{8 * dtype.itemsize}")
    fraction = np.finfo(dtype).nmant
    one = np.ones((), dtype).view(bits)
    mantissa = words.astype(bits) >> bits.type(8 * dtype.itemsize - fraction)
    return key, (mantissa | one).view(dtype) - dtype.type(1)


def uniform(attrs: Any, key: Any, low: Any, high: Any) -> Any:
    key, values = _unit(key, attrs.out_shape, np_dtype(attrs.out_dtype))
    return key, values * (high - low) + low


def normal(attrs: Any, key: Any, mean: Any, scale: Any) -> Any:
    """Box and Muller's transform of two uniform numbers."""
    dtype = np_dtype(attrs.out_dtype)
    key, values = _unit(key, (2, *attrs.out_shape), dtype)
    radius = np.sqrt(dtype.type(-2) * np.log(dtype.type(1) - values[0]))
    return key, radius * np.sin(dtype.type(2 * np.pi) * values[1]) * scale + mean


def multinomial(attrs: Any, key: Any, probs: Any) -> Any:
    """Indices along the last axis, by where uniform numbers fall on the running sum of the probabilities."""
    f = np.float32
    if not probs.shape[-1] and probs.size == 0 and attrs.num_samples:
        raise KernelError("there is nothing to choose from")
    probs = np.maximum(probs.astype(f), f(0))
    total = np.cumsum(probs / probs.sum(axis=-1, keepdims=True, dtype=f), axis=-1, dtype=f)
    key, values = _unit(key, (*probs.shape[:-1], attrs.num_samples), np.dtype(f))
    above = total[..., None] - values[..., None, :]
    return key, np.where(above > 0, above, f(1)).argmin(axis=-2).astype(np.int32)


KERNELS: dict[str, Kernel] = {
    "random.threefry_generate": lambda attrs, key: generate(key, attrs.out_shape),
    "random.threefry_split": threefry_split,
    "random.uniform": uniform,
    "random.normal": normal,
    "random.multinomial": multinomial,
}
