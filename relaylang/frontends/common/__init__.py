"""The parts that every importer uses: the builder of typed programs, the listing of layers, reports, loops."""

from __future__ import annotations

from relaylang.diagnostics.unsupported import Report, Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.files import damaged, need_package
from relaylang.frontends.common.imported import Imported, finish
from relaylang.frontends.common.inputs import check_axes, check_names, name_extents, no_model, value_for
from relaylang.frontends.common.listing import Layer, Listing
from relaylang.frontends.common.partial import external
from relaylang.frontends.common.report import Malformed, failure
from relaylang.frontends.common.table import Rule, Table

__all__ = [
    "Builder",
    "Imported",
    "Layer",
    "Listing",
    "Malformed",
    "Report",
    "Rule",
    "Table",
    "Unsupported",
    "check_axes",
    "check_names",
    "damaged",
    "external",
    "failure",
    "finish",
    "name_extents",
    "need_package",
    "no_model",
    "value_for",
]
