"""Compressed weight streams, decoded.

A stream is a row of slices. A slice has a header, perhaps a palette of values, and chunks. In these the indices of values and
the lengths of runs of zeros take turns, both as Golomb-Rice codes. Arm's `mlw_codec` defines the format; its decoder ends the
process where a stream is damaged.
"""

from __future__ import annotations

from collections.abc import Sequence

#: The divisor of runs of zeros: there are none; the stream ends.
_NO_RUNS, _END = 6, 7
#: The divisor of values: all bits of an index follow, without a unary part.
_PLAIN = 7


class Damaged(ValueError):
    """A stream that cannot be decoded."""


class _Reader:
    """The bits of a stream, the lowest of each byte first."""

    def __init__(self, content: bytes) -> None:
        self.content = content + bytes(8)
        self.end = 8 * len(content)
        self.at = 0

    def take(self, count: int) -> int:
        at = self.at
        self.at = at + count
        if self.at > self.end:
            raise Damaged("it ends inside a slice")
        return int.from_bytes(self.content[at >> 3 : (at >> 3) + 8], "little") >> (at & 7) & ((1 << count) - 1)

    def many(self, count: int, bits: int) -> list[int]:
        """Some numbers of equal width."""
        if not bits:
            return [0] * count
        at = self.at
        self.at = at + count * bits
        if self.at > self.end:
            raise Damaged("it ends inside a slice")
        word = int.from_bytes(self.content[at >> 3 : (self.at + 7) >> 3], "little") >> (at & 7)
        mask = (1 << bits) - 1
        return [word >> i & mask for i in range(0, count * bits, bits)]


def decode(content: bytes, most: int = 1 << 25) -> list[int]:
    """The weights of a stream, of up to 9 bits. Raises `Damaged`, as for more than `most` weights."""
    reader = _Reader(content)
    out: list[int] = []
    values: list[int] = []
    offset = width = 0
    runs_before: bool | None = None
    while True:
        run_divisor = reader.take(3) if reader.at < reader.end else _END
        if run_divisor == _END:
            reader.at += -reader.at & 7
            runs_before = None
            if reader.at >= reader.end:
                return out
            continue
        if run_divisor > 3 and run_divisor != _NO_RUNS:
            raise Damaged(f"runs of zeros have the divisor {run_divisor}")
        has_runs = run_divisor != _NO_RUNS
        count = reader.take(15) + 1
        divisor, truncated, fresh = reader.take(3), reader.take(1), reader.take(1)
        if fresh:
            offset, size, width = reader.take(5), reader.take(5), reader.take(3) + 2
            size += size > 0
            values = [-(v >> 1) if v & 1 else v >> 1 for v in reader.many(size, width)]
        elif runs_before != has_runs:
            raise Damaged("a slice has no palette of its own, and none before it fits")
        runs_before = has_runs
        plain = divisor == _PLAIN
        if plain:
            divisor = max(len(values) - 1, 0).bit_length() if values else width
        elif divisor > 5:
            raise Damaged(f"values have the divisor {divisor}")
        codes, runs = _chunks(reader, count, divisor, plain, bool(truncated), count + fresh if has_runs else 0, run_divisor)
        if len(out) + len(codes) + sum(runs) > most:
            raise Damaged(f"it has more than {most} values")
        _spread(out, codes, runs, values, offset, bool(fresh))


def _unary(word: int, bits: int, carry: int) -> tuple[list[int], int]:
    """The numbers of ones in front of each zero of a word, from its lowest bit on, and the ones behind the last zero."""
    numbers = []
    for _ in range(bits):
        if word & 1:
            carry += 1
        else:
            numbers.append(carry)
            carry = 0
        word >>= 1
    return numbers, carry


def _chunks(
    reader: _Reader, count: int, divisor: int, plain: bool, truncated: bool, run_count: int, run_divisor: int
) -> tuple[list[int], list[int]]:
    """The indices of a slice's values, and the lengths of its runs of zeros."""
    codes: list[int] = []
    runs: list[int] = []
    most = 8 if plain and divisor > 5 else 12
    run_bits = 12 if run_divisor < 3 else 8
    begun = begun_runs = 0
    carry = run_carry = 0
    pending: Sequence[int] = ()
    pending_runs: Sequence[int] = ()
    while True:
        ahead = begun - begun_runs if run_count else 0
        take = ahead < 8 and begun < count
        take_runs = bool(run_count) and ahead >= 0 and begun_runs < run_count
        quotients: list[int] = []
        run_quotients: list[int] = []
        unary = reader.take(12) if take and not plain else 0
        if take_runs:
            run_quotients, run_carry = _unary(reader.take(run_bits), run_bits, run_carry)
            begun_runs += len(run_quotients)
        if take:
            second = reader.take(unary.bit_count() if most == 12 else (unary & 0xFF).bit_count())
            for _ in range(most):
                code = 0
                if unary & 1:
                    code = 1 + (second & 1)
                    second >>= 1
                unary >>= 1
                carry += code
                if code < 2 or truncated:
                    quotients.append(carry)
                    carry = 0
            begun += len(quotients)
        left = pending[: count - len(codes)]
        codes += [q << divisor | r for q, r in zip(left, reader.many(len(left), divisor))]
        left = pending_runs[: run_count - len(runs)]
        runs += [q << run_divisor | r for q, r in zip(left, reader.many(len(left), run_divisor if run_count else 0))]
        pending, pending_runs = quotients, run_quotients
        if not take and not take_runs:
            if len(codes) < count or len(runs) < run_count:
                raise Damaged("a slice has too few codes")
            return codes, runs


def _spread(out: list[int], codes: list[int], runs: list[int], values: list[int], offset: int, fresh: bool) -> None:
    """Append the values of codes, with the runs of zeros behind them, and for a fresh palette one in front."""
    size = len(values)
    if fresh and runs:
        out += [0] * runs[0]
        runs = runs[1:]
    decoded = []
    for code in codes:
        if code < size:
            decoded.append(values[code])
        else:
            direct = code - size + offset
            if direct > 511:
                raise Damaged(f"a weight has the code {direct}, of more than 9 bits")
            decoded.append(-(direct >> 1) if direct & 1 else direct >> 1)
    if not runs:
        out += decoded
        return
    for value, run in zip(decoded, runs):
        out.append(value)
        if run:
            out += [0] * run
