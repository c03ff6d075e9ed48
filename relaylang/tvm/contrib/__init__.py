"""`tvm.contrib`: executors, linking, temporary folders, as scripts for TVM use them."""
