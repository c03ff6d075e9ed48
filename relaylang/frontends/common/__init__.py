"""The parts that every importer uses: the builder of typed programs, the listing of layers, reports, loops."""

from __future__ import annotations

from relaylang.diagnostics.unsupported import Report, Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.imported import Imported
from relaylang.frontends.common.listing import Layer, Listing
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.table import Rule, Table

__all__ = ["Builder", "Imported", "Layer", "Listing", "Malformed", "Report", "Rule", "Table", "Unsupported"]
