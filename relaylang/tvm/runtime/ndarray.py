"""`tvm.nd`: tensors and devices as scripts for TVM make them. There is one device, the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes  # (gives numpy the name bfloat16)  # noqa: F401
import numpy as np

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import TensorType
from relaylang.runtime.tensors import shared
from relaylang.tvm.arrays import Array
from relaylang.tvm.runtime.dltensor import handle_of

#: Names of devices -> DLPack's number of the kind.
_KINDS: dict[str, int] = {
    "cpu": 1,
    "cuda": 2,
    "cuda_host": 3,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "rocm_host": 11,
    "ext_dev": 12,
    "cuda_managed": 13,
    "oneapi": 14,
    "webgpu": 15,
    "hexagon": 16,
    "aocl": 32,
    "sdaccel": 33,
    "opengl": 34,
    "microdev": 35,
}
#: Other names that `device` takes.
_ALSO: dict[str, int] = {
    **dict.fromkeys(("llvm", "stackvm", "c", "test", "hybrid", "composite"), 1),
    "nvptx": 2,
    "cl": 4,
    "aocl_sw_emu": 32,
    "mtl": 8,
}
_NAMES = {number: name for name, number in _KINDS.items()}


class Device:
    """A device by DLPack's number of its kind and its own number. Devices other than the CPU can be named, not used."""

    __slots__ = ("device_id", "device_type")

    def __init__(self, device_type: int, device_id: int = 0) -> None:
        self.device_type = int(device_type)
        self.device_id = int(device_id)

    @property
    def exist(self) -> bool:
        """Whether programs can run on it here."""
        return self.device_type == _KINDS["cpu"] and self.device_id == 0

    def sync(self, stream: Any = None) -> None:
        """Wait for the device: a run is over when it returns."""
        self.check()

    def check(self) -> None:
        """Raise `RelayError` (R0608) for a device that is not here."""
        if self.device_type != _KINDS["cpu"]:
            notes = [
                "relaylang compiles for CPUs and for NPUs beside them; use tvm.cpu()",
                'accelerators are targets of relay.build, such as "ethos-u, c"',
            ]
            raise RelayError(error("R0608", f"the device {self!r} is not here", notes=notes))
        if self.device_id != 0:
            raise RelayError(error("R0608", f"the device {self!r} is not here", notes=["there is one CPU: tvm.cpu()"]))

    def __getattr__(self, name: str) -> Any:
        if name in _PROPERTIES:
            return None if self.device_type != _KINDS["cpu"] else _PROPERTIES[name]
        raise AttributeError(f"a device has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{_NAMES.get(self.device_type, self.device_type)}({self.device_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.device_type, self.device_id)


#: What scripts ask a device for; nothing of it is known of a CPU.
_PROPERTIES: dict[str, Any] = dict.fromkeys(
    (
        "max_threads_per_block",
        "warp_size",
        "max_shared_memory_per_block",
        "compute_version",
        "device_name",
        "max_clock_rate",
        "multi_processor_count",
        "max_thread_dimensions",
        "api_version",
        "driver_version",
        "total_global_memory",
    )
)


def device(dev_type: int | str | Device, dev_id: int = 0) -> Device:
    """A device by its kind (a name, "cpu:0", or a number) and its number. Raises `RelayError` (R0608) for an unknown kind."""
    if isinstance(dev_type, Device):
        return dev_type
    if isinstance(dev_id, bool) or not isinstance(dev_id, int):
        raise RelayError(error("R0608", f"the number of a device must be a whole number, not {dev_id!r}"))
    if not isinstance(dev_type, str):
        return Device(dev_type, dev_id)
    name, colon, number = (dev_type.split() or [""])[0].partition(":")
    if colon and not number.isdecimal():
        raise RelayError(error("R0608", f"the number of a device must be a whole number, not {number!r}"))
    kind = _KINDS.get(name, _ALSO.get(name))
    if kind is None:
        near = did_you_mean(name, [*_KINDS, *_ALSO])
        notes = [f"did you mean {near}?"] if near else [f"devices: {', '.join(_KINDS)}"]
        raise RelayError(error("R0608", f"unknown device {name!r}", notes=notes))
    return Device(kind, int(number) if colon else dev_id)


def _maker(name: str) -> Any:
    def make(dev_id: int = 0) -> Device:
        return Device(_KINDS[name], dev_id)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The device {name} of this number." + ("" if name == "cpu" else " It can be named, and not used.")
    return make


cpu, cuda, rocm, opencl, metal, vpi, vulkan, ext_dev, hexagon, webgpu = map(
    _maker, ("cpu", "cuda", "rocm", "opencl", "metal", "vpi", "vulkan", "ext_dev", "hexagon", "webgpu")
)
gpu, cl, mtl = cuda, opencl, metal


class _Tensors(type):
    """Results and constants are tensors, too."""

    def __instancecheck__(cls, value: object) -> bool:
        return type.__instancecheck__(cls, value) or isinstance(value, Array)


def _elements(tensor: NDArray) -> np.ndarray:
    """The memory of a tensor, also of a result."""
    return tensor if isinstance(tensor, np.ndarray) else tensor._data


class NDArray(metaclass=_Tensors):
    """A tensor: shape, element type, and elements in C order. `numpy()` copies them; `numpy.asarray` shares them."""

    __slots__ = ("_data", "device")

    def __init__(self, data: np.ndarray, device: Device | None = None) -> None:
        self._data = data
        self.device = device or cpu(0)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def dtype(self) -> str:
        """The element type's name."""
        return self._data.dtype.name

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def size(self) -> int:
        return self._data.size

    @property
    def handle(self) -> Any:
        """The tensor for functions of C: a pointer to a `DLTensor` of its memory."""
        return handle_of(self._data)

    ctx = property(lambda self: self.device, doc="The device, under its earlier name.")

    def numpy(self) -> np.ndarray:
        """A copy as a numpy array."""
        return self._data.copy()

    asnumpy = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is None or np.dtype(dtype) == self._data.dtype:
            return self._data.copy() if copy else self._data
        return self._data.astype(dtype)

    def copyfrom(self, source_array: Any) -> NDArray:
        """Take elements of the same shape, converted to this element type. Returns itself. Raises `RelayError` (R0640)."""
        if type(source_array) is NDArray:
            source_array.copyto(self)
            return self
        if hasattr(source_array, "__dlpack__") and not isinstance(source_array, (np.ndarray, np.generic)):
            source = shared("the array", source_array)
        else:
            try:
                source = np.asarray(source_array)
                if source.dtype.kind not in "biuf" and source.dtype.name != "bfloat16":
                    raise ValueError
            except (TypeError, ValueError):
                raise RelayError(error("R0640", f"a value of type {type(source_array).__name__} is no tensor")) from None
        if source.shape != self.shape:
            raise RelayError(error("R0640", f"an array of shape {source.shape} does not fit the shape {self.shape}"))
        with np.errstate(all="ignore"):
            np.copyto(self._data, source, casting="unsafe")
        return self

    def copyto(self, target: NDArray | Device, mem_scope: Any = None) -> NDArray:
        """Copy into another tensor of the same shape and element type, or to a device. Returns the copy."""
        if isinstance(target, Device):
            target.check()
            return NDArray(self._data.copy(), target)
        if not isinstance(target, NDArray):
            raise RelayError(error("R0640", f"a tensor is copied to a tensor or a device, not to a {type(target).__name__}"))
        if target.shape != self.shape or target.dtype != self.dtype:
            said = f"a tensor of shape {self.shape} and {self.dtype} cannot be copied to one of {target.shape} and {target.dtype}"
            raise RelayError(error("R0640", said))
        np.copyto(_elements(target), self._data)
        return target

    def same_as(self, other: object) -> bool:
        """Whether it is the same tensor, not only equal."""
        return self is other or (isinstance(other, NDArray) and self._data is _elements(other))

    def __getitem__(self, index: Any) -> Any:
        return self._data[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._data[index] = _elements(value) if isinstance(value, NDArray) else value

    def __len__(self) -> int:
        return len(self._data)

    def __bool__(self) -> bool:
        return True

    def __dlpack__(self, **options: Any) -> Any:
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def to_dlpack(self) -> Any:
        """A DLPack capsule over the same memory. It can be taken once."""
        return self._data.__dlpack__()

    def _create_view(self, shape: Sequence[int]) -> NDArray:
        return NDArray(self._data.reshape(tuple(shape)), self.device)

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device!r}>\n{self._data!r}"

    def __str__(self) -> str:
        return str(self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        return NDArray, (self._data, self.device)


def _dtype(name: Any) -> np.dtype:
    try:
        return np.dtype(str(name) if not isinstance(name, (np.dtype, type)) else name)
    except TypeError:
        raise RelayError(error("R0640", f"unknown element type {name!r}")) from None


def empty(shape: Any, dtype: Any = "float32", device: Device | None = None, mem_scope: Any = None) -> NDArray:
    """A tensor of a shape and element type, with any elements. `mem_scope` has no effect."""
    where = cpu(0) if device is None else device
    where.check()
    extents = (shape,) if isinstance(shape, (int, np.integer)) else TensorType(shape).concrete_shape
    return NDArray(np.empty(extents, _dtype(dtype)), where)


def _listed(value: Any) -> np.ndarray:
    """Numbers, and lists of them, as an array. Raises `RelayError` (R0640) for other values."""
    try:
        numbers = np.asarray(value)
    except ValueError:  # lists of different lengths
        raise RelayError(error("R0640", "the lists in a list have different lengths: they are no tensor")) from None
    if numbers.dtype.kind not in "biufV":
        raise RelayError(error("R0640", f"a value of type {type(value).__name__} is no tensor"))
    return numbers


def array(arr: Any, device: Device | None = None, mem_scope: Any = None) -> NDArray:
    """A tensor with a copy of an array, of numbers or lists of them. Raises `RelayError` (R0640, R0608)."""
    if not isinstance(arr, (np.ndarray, NDArray)):
        arr = shared("the array", arr) if hasattr(arr, "__dlpack__") and not isinstance(arr, np.generic) else _listed(arr)
    return empty(arr.shape, arr.dtype, device).copyfrom(arr)


class _Capsule:
    """A DLPack capsule with the methods that numpy asks for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(dltensor: Any) -> NDArray:
    """A tensor over the memory of another library's, given as an object with `__dlpack__` or as a capsule."""
    return NDArray(shared("the tensor", dltensor if hasattr(dltensor, "__dlpack__") else _Capsule(dltensor)))


def numpyasarray(np_data: np.ndarray) -> NDArray:
    """A tensor over an array's own memory."""
    return NDArray(np.ascontiguousarray(np_data))


__all__ = [
    "Device",
    "NDArray",
    "array",
    "cl",
    "cpu",
    "cuda",
    "device",
    "empty",
    "ext_dev",
    "from_dlpack",
    "gpu",
    "hexagon",
    "metal",
    "mtl",
    "numpyasarray",
    "opencl",
    "rocm",
    "vpi",
    "vulkan",
    "webgpu",
]
