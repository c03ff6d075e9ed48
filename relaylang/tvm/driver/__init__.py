"""`tvm.driver`: the command-line driver tvmc."""
