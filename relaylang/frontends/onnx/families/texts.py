"""Operators on texts: joining, normal forms, and counts of sequences of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.texts import Texts, constant, equal, room, rows, taken
from relaylang.ir import Expr


def string_concat(n: Node, x: Texts, y: Texts) -> Any:
    """The bytes of the second text start behind the last byte of the first."""
    b = n.b
    first, second = room(b, x), room(b, y)
    zero = b.const(b.arrays.zeros(first + second, "uint8"))
    wide = []
    for text, more in ((x, second), (y, first)):
        wide.append(b.op("nn.pad", text.codes, 0.0, pad_width=[(0, 0)] * (b.rank(text.codes) - 1) + [(0, more)]))
    left, right = (b.op("add", b.op("add", c, b.op("multiply", other, zero)), zero) for c, other in (wide, wide[::-1]))
    length = b.op("sum", b.cast(b.op("not_equal", left, 0), "int64"), axis=[-1], keepdims=True)
    at = b.op("subtract", b.const(b.arrays.arange(first + second)), length)
    inside = b.op("greater_equal", at, 0)
    later = b.op("gather", right, b.op("where", inside, at, b.const(np.int64(0))), axis=b.rank(right) - 1)
    return Texts(b.op("where", inside, later, left))


def string_normalizer(n: Node, x: Texts) -> Any:
    """Letters of ASCII change their case; texts that are stop words go. Where all go, one empty text is left."""
    b = n.b
    change = n.choice("case_change_action", "NONE", ("NONE", "LOWER", "UPPER"))
    stops = n.strings("stopwords", []) if n.has("stopwords") else []
    rank, made = b.rank(x.codes) - 1, x
    if rank not in (1, 2) or (rank == 2 and b.shape(x.codes)[0] != 1):
        raise Malformed("its operand must be a vector, or a matrix of one row")
    if stops:
        words = constant(b, stops)
        table = Texts(rows(b, x.codes))
        texts = table
        if not n.int("is_case_sensitive", 0):
            texts, words = _cased(b, table, "LOWER"), _cased(b, words, "LOWER")
        stop = b.op("any", equal(b, Texts(b.unsqueeze(texts.codes, [1])), words), axis=[1])
        keep = b.op("logical_not", stop)
        none = b.op("reshape", b.op("all", stop), newshape=(1,))
        empty = b.const(b.arrays.zeros((1, room(b, x)), "uint8"))
        places = b.op("argwhere", b.concat([keep, none], 0))
        made = taken(b, Texts(b.concat([table.codes, empty], 0)), b.squeeze(places, [1]))
        made = Texts(b.unsqueeze(made.codes, [0])) if rank == 2 else made
    return _cased(b, made, change)


def _cased(b: Builder, x: Texts, change: str) -> Texts:
    if change == "NONE":
        return x
    first, last = (ord(c) for c in ("AZ" if change == "LOWER" else "az"))
    letter = b.op("logical_and", b.op("greater_equal", x.codes, first), b.op("less_equal", x.codes, last))
    other = b.op("bitwise_xor", x.codes, b.const(np.uint8(32)))
    return Texts(b.op("where", letter, other, x.codes))


def tfidf(n: Node, x: Expr | Texts) -> Any:
    """How often each sequence of the pool stands in a row, with up to `max_skip_count` words between its own."""
    b = n.b
    mode = n.choice("mode", "TF", ("TF", "IDF", "TFIDF"))
    shortest, longest, skips = n.int("min_gram_length"), n.int("max_gram_length"), n.int("max_skip_count")
    grams, indices, weights = _pool(n, isinstance(x, Texts), shortest, longest)
    rank = (b.rank(x.codes) - 1) if isinstance(x, Texts) else b.rank(x)
    if rank not in (1, 2):
        raise Malformed(f"its operand has {rank} axes; it must be a vector or a matrix")
    words = sorted({word for gram in grams for word in gram})
    where = {word: k for k, word in enumerate(words)}
    codes = x.codes if isinstance(x, Texts) else x
    codes = b.unsqueeze(codes, [0]) if rank == 1 else codes
    length = b.extent(codes, 1, "the number of words in a row")
    wide = b.unsqueeze(codes, [2])
    if isinstance(x, Texts):
        hits = equal(b, Texts(wide), constant(b, words))
    else:
        hits = b.op("equal", wide, b.const(np.array(words), b.dtype(codes)))
    hits = b.cast(hits, "float32")
    extent = max(indices) + 1
    factors = b.arrays.zeros(extent, "float32")
    factors[indices] = weights
    order, counts = _counts(b, hits, length, [[where[word] for word in gram] for gram in grams], (shortest, longest, skips))
    into = b.arrays.zeros((extent, len(order)), "float32")
    into[[indices[k] for k in order], b.arrays.arange(len(order))] = 1.0
    made = b.op("nn.dense", counts, b.const(into), units=extent)
    if mode == "IDF":
        made = b.cast(b.op("greater", made, 0.0), "float32")
    made = made if mode == "TF" else b.op("multiply", made, b.const(factors))
    return b.squeeze(made, [0]) if rank == 1 else made


def _pool(n: Node, texts: bool, shortest: int, longest: int) -> tuple[list[tuple[Any, ...]], Sequence[int], Sequence[float]]:
    """The sequences of the pool, and for each the column of its count and its weight."""
    if texts != (n.has("pool_strings") and bool(n.strings("pool_strings"))):
        raise Malformed("its pool and its operand must both be texts or both be numbers")
    pool: Sequence[Any] = n.strings("pool_strings") if texts else n.ints("pool_int64s")
    grams, indices = _grams(n.ints("ngram_counts"), pool, shortest, longest), n.ints("ngram_indexes")
    if len(indices) != len(grams) or any(i < 0 for i in indices) or not indices:
        raise Malformed(f"its pool has {len(grams)} sequences, and ngram_indexes {len(indices)} numbers")
    weights = n.floats("weights") if n.has("weights") and n.floats("weights") else [1.0] * len(grams)
    if len(weights) != len(grams):
        raise Malformed(f"its pool has {len(grams)} sequences, and weights {len(weights)} numbers")
    return grams, indices, weights


def _grams(starts: Sequence[int], pool: Sequence[Any], shortest: int, longest: int) -> list[tuple[Any, ...]]:
    """The sequences of the pool in order; `starts` says where those of 1, 2 ... words begin."""
    if not 1 <= shortest <= longest or longest > len(starts):
        raise Malformed(f"its sequences have {shortest} to {longest} words, and ngram_counts has {len(starts)} numbers")
    if any(a > z for a, z in zip([0, *starts], [*starts, len(pool)])):
        raise Malformed("ngram_counts must be increasing places in the pool")
    grams = []
    for size, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)]), 1):
        if (end - start) % size:
            raise Malformed(f"its pool has {end - start} words for sequences of {size}")
        grams += [tuple(pool[i : i + size]) for i in range(start, end, size)]
    return grams


def _counts(
    b: Builder, hits: Expr, length: int, grams: Sequence[Sequence[int]], bounds: tuple[int, int, int]
) -> tuple[list[int], Expr]:
    """The numbers of the sequences that count, and how often each stands in a row; one column of zeros where none counts."""
    shortest, longest, skips = bounds
    by_size: dict[int, list[int]] = {}
    for k, gram in enumerate(grams):
        by_size.setdefault(len(gram), []).append(k)
    order: list[int] = []
    parts = []
    for size, numbers in by_size.items():
        if shortest <= size <= longest:
            places = b.arrays.zeros((len(numbers), size), "int64")
            places[:] = [grams[k] for k in numbers]
            parts.append(_counted(b, hits, length, places, 0 if size == 1 else skips))
            order += numbers
    return (order, b.concat(parts, 1)) if parts else ([0], b.op("multiply", b.op("sum", b.slice(hits, [0], [1], [2]), axis=[1]), 0.0))


def _counted(b: Builder, hits: Expr, length: int, places: np.ndarray, skips: int) -> Expr:
    """(rows, sequences) from `hits` (rows, words, words of the pool); `places` has the words of each sequence."""
    total = None
    parts = [b.op("take", hits, b.const(np.ascontiguousarray(column)), axis=2, mode="clip") for column in places.T]
    for step in range(1, skips + 2):
        last = length - step * (len(parts) - 1)
        if last <= 0:
            break
        b.budget.take_nodes(1, "writing its layers out")
        match = b.slice(parts[0], [0], [last], [1])
        for k, part in enumerate(parts[1:], 1):
            match = b.op("multiply", match, b.slice(part, [k * step], [k * step + last], [1]))
        count = b.op("sum", match, axis=[1])
        total = count if total is None else b.op("add", total, count)
    return total if total is not None else b.op("multiply", b.op("sum", parts[0], axis=[1]), 0.0)


def _of_texts(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A conversion whose operands are texts."""

    @wraps(convert)
    def checked(n: Node, *xs: Any) -> Any:
        if not all(isinstance(x, Texts) for x in xs):
            raise Malformed("its operands must be texts")
        return convert(n, *xs)

    return checked


RULES = (
    Rule("StringConcat", _of_texts(string_concat)),
    Rule("StringNormalizer", _of_texts(string_normalizer)),
    Rule("TfIdfVectorizer", tfidf),
)
