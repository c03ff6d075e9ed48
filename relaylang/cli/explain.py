"""Explain an error's code: a page with an example that has the error, and its repair. Without a code: all of them."""

from __future__ import annotations

import argparse
import re
import sys

from relaylang.cli.usage import UsageError
from relaylang.diagnostics import did_you_mean
from relaylang.diagnostics.pages import PAGES, page_text
from relaylang.diagnostics.rendering import prose_width

EPILOG = """\
examples:
  relay explain R0301
  relay explain                            every code, a line each
  relay explain types                      the codes whose titles, or else pages, hold a word
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="*", metavar="CODE", help="a code such as R0301 or 301, or a word of its title or page")


def run(args: argparse.Namespace) -> int:
    if not args.code:
        sys.stdout.write(_list(list(PAGES)))
        return 0
    sys.stdout.write("\n".join(_one(word) for word in args.code))
    return 0


def _list(codes: list[str]) -> str:
    return "".join(f"{code}  {PAGES[code].title}\n" for code in codes)


def _one(word: str) -> str:
    digits = word.upper().removeprefix("R")
    code = f"R{digits.zfill(4)}" if digits.isdigit() else word
    page = PAGES.get(code)
    if page is not None:
        return page_text(page, prose_width())
    titled = [c for c, p in PAGES.items() if word.lower() in p.title.lower()]
    if not titled and word.isalpha():
        titled = [c for c, p in PAGES.items() if re.search(rf"\b{word}", page_text(p, 1 << 20), re.I)]
    if titled:
        return _list(titled)
    near = did_you_mean(code, PAGES)
    hint = f"; did you mean {near}?" if near else ""
    raise UsageError(f"relay explain: there is no code {word}{hint}", "relay explain")
