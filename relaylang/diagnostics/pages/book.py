"""All pages, by code."""

from __future__ import annotations

import textwrap

from relaylang.diagnostics.pages import command, compiling, evaluation, files, names, syntax, types
from relaylang.diagnostics.pages.page import Page

#: Every page by its code, in the order of the codes.
PAGES: dict[str, Page] = {
    page.code: page
    for module in (files, syntax, names, types, evaluation, compiling, command)
    for page in sorted(module.PAGES, key=lambda page: page.code)
}


def page_text(page: Page, width: int = 100) -> str:
    """A page as it is printed: title, text in `width` columns, the wrong example, the repaired one."""
    paragraphs = [textwrap.fill(" ".join(part.split()), width) for part in page.text.strip().split("\n\n")]
    wrong = textwrap.indent(page.wrong.strip("\n"), "    ")
    right = textwrap.indent(page.right.strip("\n"), "    ")
    return f"{page.code}: {page.title}\n\n" + "\n\n".join(paragraphs) + f"\n\nWrong:\n\n{wrong}\n\nRight:\n\n{right}\n"
