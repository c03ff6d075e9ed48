"""The loop language: what a kernel does, between fused operators and C.

`ir` has the nodes, `check` the rules that they obey, `rewrites` the schedules as functions from loops to loops. `render`
writes C, `text` a page to read. A kernel's stage is a list of statements.
"""
