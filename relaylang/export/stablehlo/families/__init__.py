"""The rules of StableHLO's export, one file for each family of operators."""
