"""The layers that VTA computes: which calls join one, what is read of them, and the steps that compute them.

`reader` takes a composite's calls and returns a layer. `table` has the patterns of composites.
"""
