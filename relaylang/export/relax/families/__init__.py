"""The rules of Relax's export, one file for each family of operators."""
