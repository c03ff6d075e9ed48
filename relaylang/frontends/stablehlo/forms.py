"""What the words of the pretty forms mean: the names that attributes have in the generic form."""

from __future__ import annotations

import re
from typing import Any

from relaylang.frontends.stablehlo.tokens import Tokens

#: Operation -> name in the pretty form -> name in the generic form.
_KEYS: dict[str, dict[str, str]] = {
    "broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "concatenate": {"dim": "dimension"},
    "dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "dynamic_iota": {"dim": "iota_dimension"},
    "dynamic_slice": {"sizes": "slice_sizes"},
    "fft": {"type": "fft_type", "length": "fft_length"},
    "get_dimension_size": {"dim": "dimension"},
    "iota": {"dim": "iota_dimension"},
    "pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "reverse": {"dims": "dimensions"},
    "set_dimension_size": {"dim": "dimension"},
    "transpose": {"dims": "permutation"},
}
#: Operation -> the generic names of words in their order.
_POSITIONS: dict[str, tuple[str, ...]] = {
    "compare": ("comparison_direction", "compare_type"),
    "broadcast_compare": ("comparison_direction", "compare_type"),
    "composite": ("name",),
    "custom_call": ("call_target_name",),
    "call": ("callee",),
}
#: Entries of a convolution's window.
_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}
#: Words that stand at the beginning of a line inside an operation.
PRETTY = frozenset(("applies", "across", "reducer", "cond", "do"))


def _bounds(word: Any, tokens: Tokens, at: int) -> dict[str, list[Any]]:
    """The attributes of a slice: each axis has a start, a limit and perhaps a stride."""
    parts: list[Any] = [[*p, 1] if isinstance(p, list) and len(p) == 2 else p for p in (word if isinstance(word, list) else [None])]
    if not all(isinstance(p, list) and len(p) == 3 for p in parts):
        tokens.fail("the bounds of a slice are wrong", at)
    return dict(zip(("start_indices", "limit_indices", "strides"), [[p[i] for p in parts] for i in range(3)]))


def pretty(name: str, attributes: dict[str, Any], words: list[Any], tokens: Tokens, at: int) -> dict[str, Any]:
    """The attributes of an operation in its pretty form, by their generic names."""
    kind = name.partition(".")[2]
    keys = _KEYS.get(kind, {})
    generic_attributes = {keys.get(key, key): value for key, value in attributes.items()}
    for key, word in zip(_POSITIONS.get(kind, ()), words):
        generic_attributes[key] = word
    if kind == "slice" and words:
        generic_attributes |= _bounds(words[-1], tokens, at)
    elif kind == "get_tuple_element" and words:
        generic_attributes["index"] = words[-1][0][0] if words[-1] and words[-1][0] else -1
    elif kind == "dot_general":
        for key, generic in (("batching_dims", "batching"), ("contracting_dims", "contracting")):
            pair = generic_attributes.pop(key, None)
            if isinstance(pair, tuple):
                generic_attributes |= {f"lhs_{generic}_dimensions": pair[0], f"rhs_{generic}_dimensions": pair[1]}
    elif kind == "reduce_precision":
        form = re.fullmatch(r"e(\d+)m(\d+)", str(generic_attributes.get("format")))
        if form is not None:
            generic_attributes |= {"exponent_bits": int(form[1]), "mantissa_bits": int(form[2])}
    window: Any = generic_attributes.pop("window", None)
    if isinstance(window, dict):
        generic_attributes |= {_WINDOW.get(str(key), str(key)): value for key, value in window.items()}
    return generic_attributes


def flattened(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes with the fields of dialects' structures, such as `dimension_numbers`, beside them."""
    flat = dict(attributes)
    for key in ("dimension_numbers", "dim_numbers", "scatter_dimension_numbers", "dot_dimension_numbers"):
        inner = flat.get(key)
        if isinstance(inner, dict):
            del flat[key]
            flat |= inner
    return flat


__all__ = ["PRETTY", "flattened", "pretty"]
