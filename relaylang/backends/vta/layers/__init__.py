"""The layers that VTA computes: the calls that join one, how they are read, and the steps that compute them.

`reader` takes a composite's calls and returns a layer. `table` has the patterns of composites.
"""
