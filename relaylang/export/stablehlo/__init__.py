"""Export to StableHLO."""

from relaylang.export.stablehlo.module import export_stablehlo

__all__ = ["export_stablehlo"]
