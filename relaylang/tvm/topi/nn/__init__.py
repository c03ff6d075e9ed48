"""What scripts take from `tvm.topi.nn`."""
