"""Conversions of StableHLO's operators, a file per family. Each file ends with its `RULES`."""
