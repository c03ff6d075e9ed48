"""Diagnostics: values that name a program's mistakes, their places and their repairs.

`value` has the classes, `source` texts and spans, `rendering` the picture for a terminal, `export` JSON and SARIF.
`suggest` finds similar names. `unsupported` collects what an import or export cannot convert. `pages` has one page for each
code, which `relay explain` shows.
"""

from relaylang.diagnostics.rendering import render
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.diagnostics.suggest import did_you_mean
from relaylang.diagnostics.value import (
    Diagnostic,
    Diagnostics,
    Fix,
    Label,
    RelayError,
    and_more,
    by_place,
    error,
    first_ones,
)

__all__ = [
    "Diagnostic",
    "Diagnostics",
    "Fix",
    "Label",
    "RelayError",
    "SourceFile",
    "Span",
    "and_more",
    "by_place",
    "did_you_mean",
    "error",
    "first_ones",
    "render",
]
