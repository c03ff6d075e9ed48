"""What each code means: a page for every code that relaylang reports, as `relay explain R0101` prints it."""

from __future__ import annotations

from relaylang.explain.book import PAGES, page_text
from relaylang.explain.page import Page

__all__ = ["PAGES", "Page", "page_text"]
