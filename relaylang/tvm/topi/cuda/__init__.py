"""Of TVM's kernels for CUDA there are sizes that scripts ask for."""
