"""Generators of random programs: each makes the same program for the same seed.

| module | programs |
|---|---|
| `any_ir` | every kind of node and name; well-scoped, not well-typed |
| `programs` | one tensor type; branches, lets, closures, tuples, calls of functions |
| `shapes` | tensors of several shapes; values used again long after |
| `graphs` | int32 graphs with shared nodes, and with effects on a reference |
| `functional` | closures, recursion, references, data types and matches, as text |
| `typed` | every construct, grown from the wanted type, as text; some fail |
| `branches` | parallel convolutions, dense layers and matrix products of one input |
| `layouts` | convolutions and the operators around them |
| `networks`, `quantised` | networks of images and features, in floats and in 8 bits |
| `mutants` | a text with a few tokens changed |

`relaylang.testing.strategies` has well-typed programs for Hypothesis, `relaylang.testing.hostile` texts that strain a reader.
"""
