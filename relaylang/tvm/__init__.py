"""TVM's face: every name that exists because `tvm.relay` had it. The top level re-exports these modules."""
