"""`tvm.runtime`: tensors, devices, compiled programs and their files, as scripts for TVM use them."""

from relaylang.runtime.profile import Profile
from relaylang.tvm.runtime.module import (
    BenchmarkResult,
    Module,
    enabled,
    load_static_library,
    num_threads,
    system_lib,
)
from relaylang.tvm.runtime.ndarray import (
    Device,
    NDArray,
    cl,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    mtl,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from relaylang.tvm.runtime.object_path import ObjectPath
from relaylang.tvm.runtime.packed_func import PackedFunc
from relaylang.tvm.runtime.params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)
from relaylang.tvm.runtime.program import load_module

__all__ = [
    "BenchmarkResult",
    "Device",
    "Module",
    "NDArray",
    "ObjectPath",
    "PackedFunc",
    "Profile",
    "cl",
    "cpu",
    "cuda",
    "device",
    "enabled",
    "ext_dev",
    "gpu",
    "hexagon",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "load_static_library",
    "metal",
    "mtl",
    "num_threads",
    "opencl",
    "rocm",
    "save_param_dict",
    "save_param_dict_to_file",
    "system_lib",
    "vpi",
    "vulkan",
    "webgpu",
]
