"""Tokens in words: those that could stand at a place, and the one found there."""

from __future__ import annotations

#: Brackets: what closes an opening one, what opens a closing one, the closing ones' terminals.
CLOSES = {"(": ")", "[": "]", "{": "}"}
OPENS = {v: k for k, v in CLOSES.items()}
CLOSERS = {")": "RPAR", "]": "RSQ", "}": "RBRACE"}

#: Signs and words by the names of their terminals, in the order of messages.
SIGNS = {
    "SEMI": ";",
    "COMMA": ",",
    "RPAR": ")",
    "RSQ": "]",
    "RBRACE": "}",
    "LBRACE": "{",
    "ARROW": "->",
    "FAT": "=>",
    "EQ": "=",
    "COLON": ":",
    "LPAR": "(",
    "LSQ": "[",
    "GT": ">",
    "ELSE": "else",
    "TYPE": "type",
}
_OPERATORS = {"PLUS", "MINUS", "STAR", "SLASH", "LT", "GT", "LE", "GE", "EQEQ", "NE"}
EXPRESSION = {
    "LET",
    "GRAPHBIND",
    "FREE_VAR",
    "STRING",
    "MATCH",
    "MATCHQ",
    "IF",
    "FN",
    "LBRACE",
    "LPAR",
    "REF",
    "REF_READ",
    "REF_WRITE",
    "LOCAL",
    "NUMBER",
    "NAME",
    "NAMEP",
    "GLOBAL",
    "META",
    "MINUS",
}
#: Groups of terminals under one word. Where all of the first set are possible, the word replaces those of the second.
_WORDS: list[tuple[set[str], set[str], str]] = [
    ({"LOCAL", "NUMBER", "NAMEP", "IF"}, EXPRESSION, "an expression"),
    ({"STAR", "EQEQ"}, _OPERATORS | {"LPAR", "PROJ", "DOT"}, "an operator"),
    ({"TENSOR", "NAME", "FN"}, {"TENSOR", "CUSTOM", "TENSOR_WORD", "NAME", "LPAR", "FN", "REF", "META"}, "a type"),
    ({"LOCAL", "NAME", "NAMEP", "LPAR"}, {"LOCAL", "PARAM", "NAME", "NAMEP", "LPAR", "CASE"}, "a pattern"),
    ({"LOCAL", "PARAM", "ATTRS"}, {"LOCAL", "PARAM", "ATTRS", "NAMEEQ", "NAME", "STRING"}, "a parameter"),
    (
        {"NUMBER", "STRING", "QUESTION"},
        {"NUMBER", "STRING", "QUESTION", "NAME", "META", "GLOBAL", "LSQ", "LPAR", "LBRACE", "MINUS", "NAMEP", "QUOTED"},
        "an attribute's value",
    ),
    ({"NUMBER", "QUESTION"}, {"NUMBER", "QUESTION", "NAME", "META"}, "an extent"),
    ({"NAMEEQ"}, {"NAMEEQ", "ATTRS", "STRING", "NAME", "TENSOR", "TENSOR_WORD"}, "an attribute"),
    ({"DEF"}, {"DEF", "TYPE", "EXTERN", "DATA"}, "a definition"),
    ({"LOCAL"}, {"LOCAL", "PARAM"}, "a variable"),
    ({"GLOBAL"}, {"GLOBAL"}, "a function's name"),
    ({"NAME", "NAMEP"}, {"NAME", "NAMEP"}, "a constructor"),
    ({"NAME"}, {"NAME"}, "a name"),
    ({"NUMBER"}, {"NUMBER"}, "a number"),
    ({"CASE"}, {"CASE"}, "a clause"),
    ({"META"}, {"META"}, "`meta[...]`"),
    ({"STRING"}, {"STRING"}, "a string"),
    ({"$END"}, {"$END"}, "the end of the text"),
]
_KINDS = {
    "NUMBER": "the number",
    "LOCAL": "the variable",
    "GLOBAL": "the function",
    "STRING": "the string",
    "QUOTED": "the string",
    "ATTRS": "the attribute",
    "NAMEEQ": "the attribute",
    "TENSOR": "the type",
    "GRAPHBIND": "the binding",
    "PARAM": "the variable",
    "META": "the metadata",
    "DEF": "the definition",
    "HEADER": "the header",
}
_LONGEST = 40


def in_words(possible: set[str]) -> list[str]:
    """A set of terminals in words: `;`, an operator, an expression, a type."""
    left = set(possible) - {"ERROR", "HEADER"}
    words: list[str] = []
    for needed, covered, word in _WORDS:
        if needed <= left:
            words.append(word)
            left -= covered
    signs = [f"`{sign}`" for name, sign in SIGNS.items() if name in left]
    if signs and "an operator" in words:  # which can follow any expression
        words.remove("an operator")
    return signs + words


def listed(words: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    if len(words) > 5:
        words = [*words[:5], "something else"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def quoted(token: str) -> str:
    """A token's text in backticks, cut where it is long."""
    if not token:
        return "the end of the text"
    text = token if len(token) <= _LONGEST else token[: _LONGEST - 1] + "…"
    return f"`{text}`"


def found_in_words(kind: str, token: str) -> str:
    """The found token in words: the variable `%x`, `;`, the end of the text."""
    if kind == "PARAM":
        token = token.partition(":")[0]
    elif kind in ("ATTRS", "NAMEEQ"):
        token = token.partition("=")[0]
    elif kind == "GRAPHBIND":
        token = token.rstrip("=").rstrip()
    word = _KINDS.get(kind)
    if not token or word is None:
        return quoted(token)
    return f"{word} {quoted(token)}"
