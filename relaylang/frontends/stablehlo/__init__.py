"""StableHLO: MLIR's text, and portable artifacts of bytecode, become Relay programs."""

from __future__ import annotations

from relaylang.frontends.stablehlo.importer import import_stablehlo

__all__ = ["import_stablehlo"]
