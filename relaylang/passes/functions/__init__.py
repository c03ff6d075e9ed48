"""Passes over functions: Inline, LambdaLift, EtaExpand, Defunctionalization, PartialEvaluate."""
