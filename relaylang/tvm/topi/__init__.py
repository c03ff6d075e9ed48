"""Of `tvm.topi` there is `testing`: what operators compute, as numpy arrays; and `utils`."""
