"""The layers that the Ethos-U computes: what each takes of a Relay program, and how it is written in TOSA.

A file has the layers of one kind. A reader takes a composite's calls and returns a value, which a writer puts into the graph.
`table` has a record for each layer.
"""
