"""Measures prose: sentences of at most 30 words, and no phrase that hides its subject.

`faults` takes a Markdown page, a docstring or a message. Code, tables, headings and HTML do not count. `texts` gives
the docstrings and comments of Python code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The most words of a sentence. A piece of inline code counts as one word.
LIMIT = 30

#: Phrases that hide the subject: the pattern, and the advice.
FORBIDDEN = (
    (r"\bwhat(?:ever)? (?:is|are|was|were|has|have|had|stands?|comes?|goes|remains?|does)\b", "name the thing"),
    (r"\b(?:is|are|was|were|be|been) told\b", "say who reads or prints it"),
    (r"\btells? so\b|\bsays? so\b", "say what the message says"),
    (r"\b(?:that|which|what|who) (?:is|are) none\b", "name the thing"),
    (r"\b(?:is|are) to be\b", "use the verb itself"),
    (r"\bthe ones? (?:that|which|who)\b", "name the thing"),
    (r"\bin order to\b|\bso-called\b|\bit should be noted\b", "leave it out"),
)
_FORBIDDEN = [(re.compile(pattern, re.I), advice) for pattern, advice in FORBIDDEN]

_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[ \t]*$", re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->|<(?:picture|details|summary|p|img|a|source)\b[^>]*>|</\w+>", re.S)
_ITEM = re.compile(r"^ *(?:[-*+]|\d+[.)]) +")
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)[.!?]['\")*_]*(?=\s+(?:[^a-z]|relay(?:lang)?\b|pytest\b|numpy\b)|\s*$)")
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1")
_WORD = re.compile(r"[^\W_]")


def paragraphs(text: str) -> Iterator[str]:
    """The running text of a page or docstring, a paragraph or list item at a time, on one line each."""
    text = _COMMENT.sub("", _FENCE.sub("\n", text))
    current: list[str] = []
    in_list = after_gap = False
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        if not bare:
            if current:
                yield " ".join(current)
            current, after_gap = [], True
            continue
        code = line.startswith("    ") and not current and not in_list
        if code or bare.startswith(("|", "#", ">>>")) or re.fullmatch(r"[-=~*_+|: ]{3,}|\[[^\]]+\]:.*", bare):
            if current:
                yield " ".join(current)
            current = []
            continue
        if _ITEM.match(line):
            if current:
                yield " ".join(current)
            current, in_list = [_ITEM.sub("", line).strip()], True
        else:
            in_list = in_list and (not after_gap or line.startswith(" "))
            current.append(bare)
        after_gap = False


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page, docstring or message."""
    for paragraph in paragraphs(text):
        plain = _LINK.sub(r"\1", paragraph)
        # full stops in code end no sentence: they are searched in a text of the same length without code
        hidden = _CODE.sub(lambda found: "`" * len(found[0]), plain)
        start = 0
        for end in [*(m.end() for m in _END.finditer(hidden)), len(plain)]:
            sentence = plain[start:end].strip()
            start = end
            if _WORD.search(sentence):
                yield sentence


def words(sentence: str) -> int:
    """How many words a sentence has."""
    plain = _CODE.sub("code", sentence)
    return sum(1 for word in plain.split() if _WORD.search(word))


def faults(text: str, limit: int = LIMIT) -> Iterator[tuple[str, str]]:
    """Each sentence that breaks the standard, with the reason."""
    for sentence in sentences(text):
        count = words(sentence)
        if count > limit:
            yield sentence, f"{count} words, at most {limit}"
        plain = _CODE.sub("code", sentence)
        for pattern, advice in _FORBIDDEN:
            found = pattern.search(plain)
            if found:
                yield sentence, f"“{found[0]}”: {advice}"


_STRING_OR_COMMENT = re.compile(r"""("{3}|'{3})((?:\\.|[^\\])*?)\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(\#[^\n]*)""", re.S)
#: Comments that tools read.
_FOR_TOOLS = re.compile(r"#!|#:?\s*(?:fmt: |noqa|type: |pragma: |-\*-|ruff: |mypy: )")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of Python code, each with its first line. Docstrings have three quotes.

    Comments that fill whole lines and follow each other are one text. A comment behind code is a text of its own.
    This reads the code without parsing it, which is ten times as fast.
    """
    block: list[str] = []
    line, counted, end = 1, 0, 0  # `end`: the last line of `block`
    code = -1  # the last character that is no space and in no comment
    spaces = 0  # everything from here to the next string or comment follows `code`
    for found in _STRING_OR_COMMENT.finditer(source):
        start = found.start()
        before = source[spaces:start].rstrip()
        if before.rstrip("rR").rstrip():
            code = spaces + len(before.rstrip("rR").rstrip()) - 1
        spaces = found.end()
        line += source.count("\n", counted, start)
        counted = start
        indent = source[source.rfind("\n", 0, start) + 1 : start]
        comment = found[3]
        if comment is None:
            if found[1] and indent.strip() in ("", "r", "R") and (code < 0 or source[code] == ":"):
                inner = indent.rstrip("rR")
                yield line, "\n".join(row.removeprefix(inner) for row in found[2].split("\n"))
            code = found.end() - 1
        elif not _FOR_TOOLS.match(comment):
            whole = not indent.strip()
            if block and not (whole and line == end + 1):
                yield end + 1 - len(block), "\n".join(block)
                block = []
            words = re.sub(r"^#:? ?", "", comment)
            if whole:
                block.append(words)
                end = line
            else:
                yield line, words
    if block:
        yield end + 1 - len(block), "\n".join(block)
