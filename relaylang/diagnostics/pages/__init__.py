"""What each code means: a page for every code that relaylang reports, as `relay explain R0101` prints it."""

from __future__ import annotations

from relaylang.diagnostics.pages.book import PAGES, page_text
from relaylang.diagnostics.pages.page import Page

__all__ = ["PAGES", "Page", "page_text"]
