"""What Lark's own machinery takes for Relay text, as a bar for the loop in `relaylang.syntax.reader`.

Both parsers come from `grammar/relay.lark` and build Lark's trees, no IR and no types:

- fine: Lark's contextual lexer and a terminal for each bracket, name and number;
- coarse: the grammar's own terminals (a whole tensor type, a whole attribute list, an operator's name with its bracket).
"""

from __future__ import annotations

import re

from lark import Lark

from relaylang.grammar import text as grammar_text

#: The terminals that stand for several brackets, names or signs.
COARSE = ("GRAPHBIND", "PARAM", "TENSOR", "META", "CUSTOM", "ATTRS", "NAMEEQ", "NAMEP", "PROJ")

_IGNORED = r"""
%ignore /\s+/
"""


def _without(text: str, names: set[str]) -> str:
    """A grammar's text without some terminals, every alternative that uses one, and the rules that this leaves empty."""
    blocks = re.split(r"\n(?=[a-zA-Z%])", text)
    gone = set(names)
    while True:
        word = re.compile(rf"\b(?:{'|'.join(gone)})\b")
        out: list[str] = []
        before = len(gone)
        for block in blocks:
            name, _, alternatives = block.partition(":")
            if re.fullmatch(r"[a-z_]+", name):
                kept = [a.strip() for a in re.split(r"\n\s*\|", alternatives) if not word.search(a)]
                if kept:
                    out.append(f"{name}: " + "\n    | ".join(kept) + "\n")
                else:
                    gone.add(name)
            elif not word.match(block):
                out.append(block)
        if len(gone) == before:
            return "\n".join(out)


def parser(coarse: bool) -> Lark:
    """Lark's parser with Lark's contextual lexer, on the coarse terminals or on fine ones."""
    text = re.sub(r"(?m)^\s*//.*\n", "", grammar_text())
    if not coarse:
        text = _without(text, set(COARSE))
    # lark separates keywords from names only if both have one priority
    text = re.sub(r'(?m)^([A-Z_]+): (?="[a-zA-Z_]+")', r"\1.77: ", text)
    return Lark(text + _IGNORED, parser="lalr", lexer="contextual", maybe_placeholders=False)
