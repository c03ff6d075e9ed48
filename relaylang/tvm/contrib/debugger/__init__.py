"""`tvm.contrib.debugger`: executors that show the time of each kernel."""
