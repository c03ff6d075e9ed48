"""Of `tvm.topi.sparse` there is `utils`."""
