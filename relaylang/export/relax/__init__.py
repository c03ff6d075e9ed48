"""Export to Relax."""

from relaylang.export.relax.module import export_relax

__all__ = ["export_relax"]
