"""A text with a few of its tokens deleted, doubled, swapped or replaced."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from relaylang.syntax.tokeniser import tokenise

#: The pieces of a metadata section, whose JSON is changed, too.
_METADATA = re.compile(r'"[^"\n]*"|[\w.]+|\s+|[^\w\s]')
_ODD = [
    "%", "@", "}", "{", "(", ")", "]", "[", ",", ";", "=", "->", "=>", '"', "'", "/*", "*/", "let ", "def ", "if ", "1e999f",
    "%x", "@f",
    "\x00", "\ud800", "é", "meta[", "Tensor[(", "#[metadata]", "\\", "?", "fn ", "match ", "type ", "999999999999999999999",
]  # fmt: skip

_NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "10",
    "2i64",
    "4i64",
    "1f",
    "1.5",
    "0.1f16",
    "1bf16",
    "3u8",
    "1e3",
    "-1",
    "1000000000",
    "2.5f64",
    "None",
    "inff",
    "nan",
    "65504f16",
    "3.40282e+38f",
]


def _pieces(text: str) -> Iterator[str]:
    """The tokens of a text and the white space between them."""
    at = 0
    for token in tokenise(text):
        if token.start > at:
            yield text[at : token.start]
        yield from _METADATA.findall(token.text) if token.kind == "metadata" else (token.text,)
        at = token.end
    if at < len(text):
        yield text[at:]


def _kindly(rng: random.Random, word: str, pieces: list[str], tokens: list[int]) -> str:
    """A token's text changed so that the whole may well be a program still."""
    if word[0].isdigit() and rng.random() < 0.8:
        return rng.choice(_NUMBERS)
    if word[0] == "%" and len(word) > 1 and rng.random() < 0.6:
        others = [o for i in tokens if (o := pieces[i])[0] == "%" and len(o) > 1]
        return rng.choice([*others, f"({word})", f"({word};{word})", f"{{{word}}}", f"-{word}", f"{word} + {word}", f"({word},).0"])
    if word == ";":
        return rng.choice(["", "\n", ";\n\n", "; // c\n", ";1;", "\n-1\n"])
    if word in ("(", "{", ",", ")", "}", "=", "["):
        return rng.choice(["{}/*c*/", "/* ty=int32* */{}", " {} // d\n", "\n{}", "/* span=a*b:1:2 */{}/*x*//*y*/"]).format(word)
    if word in ("[]", "None", "True", "False"):
        return rng.choice(["None", "True", "[]", "[1, None]", "0", "-1"])
    return f"{word} " if word[-1] != "/" else word


def mutant(rng: random.Random, text: str, gentle: bool = False) -> str:
    """The text with one to three of its tokens changed; with `gentle`, so that many of them can be read."""
    pieces = list(_pieces(text))
    for _ in range(rng.choice((1, 1, 2, 3))):
        tokens = [i for i, p in enumerate(pieces) if p.strip()]
        if not tokens:
            break
        at = rng.choice(tokens)
        if gentle and rng.random() < 0.9:
            pieces[at] = _kindly(rng, pieces[at], pieces, tokens)
            continue
        what = rng.randrange(6)
        if what == 0:
            pieces[at] = ""
        elif what == 1:
            pieces[at] *= 2
        elif what == 2:
            other = rng.choice(tokens)
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif what == 3:
            pieces[at] = rng.choice(_ODD)
        elif what == 4:
            pieces.insert(at, rng.choice(_ODD))
        else:
            word = pieces[at]
            cut = rng.randrange(len(word))
            pieces[at] = word[:cut] + word[cut + 1 :]
    if rng.random() < 0.05:
        pieces = pieces[: rng.randrange(len(pieces) + 1)]
    return "".join(pieces)


__all__ = ["mutant"]
