"""Pages."""

from __future__ import annotations

from relaylang.explain.page import Page

PAGES: tuple[Page, ...] = ()
