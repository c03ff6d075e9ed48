"""All pages, by code."""

from __future__ import annotations

import textwrap

from relaylang.diagnostics.pages import (
    backends,
    command,
    evaluation,
    files,
    imports,
    lints,
    names,
    passes,
    patterns,
    session,
    syntax,
    types,
)
from relaylang.diagnostics.pages.page import Page

#: Every page by its code, in the order of the codes; those that `add_pages` adds stand behind.
PAGES: dict[str, Page] = {}


def add_pages(*pages: Page) -> None:
    """Add codes, each with its page. An installed package calls it for the codes that it raises.

    Raises `ValueError` for a code that has another page already.
    """
    for page in pages:
        if PAGES.setdefault(page.code, page) != page:
            raise ValueError(f"{page.code} has a page already: {PAGES[page.code].title}")


_FAMILIES = (files, syntax, names, types, evaluation, passes, patterns, backends, command, session, imports, lints)
add_pages(*sorted((page for family in _FAMILIES for page in family.PAGES), key=lambda page: page.code))


def page_text(page: Page, width: int = 100) -> str:
    """A page as it is printed: title, text in `width` columns, the wrong example, the repaired one."""
    paragraphs = [textwrap.fill(" ".join(part.split()), width) for part in page.text.strip().split("\n\n")]
    wrong, right = (textwrap.indent(readable(example), "    ") for example in (page.wrong, page.right))
    return f"{page.code}: {page.title}\n\n" + "\n\n".join(paragraphs) + f"\n\nWrong:\n\n{wrong}\n\nRight:\n\n{right}\n"


def readable(example: str) -> str:
    """An example as a reader sees it: control characters as their pictures, and words for an empty file."""
    text = "".join(chr(0x2400 + ord(c)) if c < " " and c not in "\t\n" else c for c in example.strip("\n"))
    return text if text.strip() else "(an empty file)"
