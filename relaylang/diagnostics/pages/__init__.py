"""Codes of diagnostics: each is one page with title, text, a wrong example and the mended one.

A code is defined by its `Page` in the file of its family, and nowhere else. `relay explain R0101` prints the page. Code
that raises an error imports no page.
"""

from __future__ import annotations

from relaylang.diagnostics.pages.book import PAGES, add_pages, page_text, readable
from relaylang.diagnostics.pages.page import Page

__all__ = ["PAGES", "Page", "add_pages", "page_text", "readable"]
