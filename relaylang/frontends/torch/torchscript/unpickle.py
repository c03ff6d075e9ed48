"""A reader of the pickles in TorchScript archives. It builds tensors, plain records, lists, dicts, numbers and texts only.

Names in a pickle are never looked up in Python: each is one of the few that are known here, or a record's class.
"""

from __future__ import annotations

import math
import pickletools
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401  (gives numpy the name bfloat16)
import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import damaged
from relaylang.frontends.torch.torchscript.values import Quant, Record, Stored, count_parts
from relaylang.runtime.budget import Budget

#: Storage classes of torch and their element types.
_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "QInt8Storage": "int8",
    "QUInt8Storage": "uint8",
    "QInt32Storage": "int32",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "QUInt4x2Storage": "uint4",
}
_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")
_SCHEMES = ("per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams")
_CLASS = re.compile(r"__torch__(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class _Name:
    """A name of the pickle: "torch._utils _rebuild_tensor_v2"."""

    text: str


class _Mark:
    pass


class Unpickler:
    """Reads one pickle. `storage` gives the bytes of a storage by its key. Raises `RelayError` (R0802, R0016)."""

    def __init__(self, file: str, member: str, storage: Callable[[str], bytes], budget: Budget) -> None:
        self.budget = budget
        self.file = file
        self.member = member
        self.storage = storage
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.tensors: dict[Any, Stored] = {}

    def load(self, data: bytes) -> Any:
        """The value of the pickle."""
        plain = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINSTRING", "BINUNICODE8"}
        for opcode, arg, _ in _opcodes(data):
            name = opcode.name
            if name in plain or name in ("SHORT_BINSTRING", "LONG4"):
                self.stack.append(arg)
            elif name == "STOP":
                return self.stack.pop()
            else:
                step = _STEPS.get(name)
                if step is None:
                    raise self.wrong(f"has the instruction {name}, which TorchScript does not use")
                step(self, arg)
        raise self.wrong("has no end")

    def wrong(self, what: str) -> RelayError:
        """The error for this pickle."""
        return damaged(self.file, f"{self.member} {what}")

    def marked(self) -> list[Any]:
        """The values above the last mark."""
        at = len(self.stack) - 1
        while not isinstance(self.stack[at], _Mark):
            at -= 1
            if at < 0:
                raise self.wrong("is damaged")
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values

    def name(self, arg: str) -> None:
        """Push a name. Raises `RelayError` for one that is not known here."""
        module, _, short = arg.partition(" ")
        known = (
            (module == "torch" and (short in _STORAGES or short in _SCHEMES or short in ("device", "Size")))
            or (module == "torch._utils" and short in ("_rebuild_tensor_v2", "_rebuild_qtensor", "_rebuild_parameter"))
            or (module == "torch.jit._pickle" and short in (*_LISTS, "restore_type_tag"))
            or arg == "collections OrderedDict"
            or (_CLASS.fullmatch(module) is not None and short.isidentifier())
        )
        if not known:
            raise self.wrong(f"names {arg.replace(' ', '.')}, which an importer must not run")
        self.stack.append(_Name(arg))

    def new(self) -> None:
        """A record of a class of the program."""
        args, kind = self.stack.pop(), self.stack.pop()
        if not isinstance(kind, _Name) or not kind.text.startswith("__torch__") or args != ():
            raise self.wrong("makes an object that is no record")
        self.stack.append(Record(kind.text.replace(" ", ".")))

    def build(self) -> None:
        """Give a record its fields, or the state that its own method takes."""
        state, record = self.stack.pop(), self.stack[-1]
        if not isinstance(record, Record):
            raise self.wrong("gives fields to something that is no record")
        record.state = state
        if isinstance(state, dict) and all(isinstance(key, str) for key in state):
            record.fields.update(state)

    def reduce(self) -> None:
        """The result of one of the functions that are known here."""
        args, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Name) or not isinstance(args, tuple):
            raise self.wrong("calls something that is no function")
        module, short = function.text.split(" ")
        if short == "_rebuild_tensor_v2":
            self.stack.append(self.tensor(args[0], args[1], args[2], args[3]))
        elif short == "_rebuild_qtensor":
            self.stack.append(self.tensor(args[0], args[1], args[2], args[3], args[4]))
        elif short in ("_rebuild_parameter", "restore_type_tag", "device", "Size") or short in _LISTS:
            self.stack.append(args[0])
        elif short == "OrderedDict":
            self.stack.append(dict(args[0]) if args else {})
        elif module.startswith("__torch__"):
            self.stack.append(Record(function.text.replace(" ", "."), state=args))
        else:
            raise self.wrong(f"calls {function.text.replace(' ', '.')}")

    def tensor(self, stored: Any, offset: int, sizes: Any, strides: Any, scheme: Any = None) -> Stored:
        """A strided view of a storage's bytes; every element lies inside. Equal views are one tensor."""
        sizes, strides, offset = [int(s) for s in sizes], [int(s) for s in strides], int(offset)
        kind, key, _ = stored
        same = (key, kind, offset, tuple(sizes), tuple(strides))
        if scheme is None and same in self.tensors:
            return self.tensors[same]
        dtype = np.dtype("uint8" if kind == "uint4" else kind)
        data = self.storage(key)
        flat = np.frombuffer(data, dtype, len(data) // dtype.itemsize)
        if kind == "uint4":  # two elements in a byte, the first in the lower bits
            self.budget.take_bytes(2 * flat.size, "laying its weights out")
            flat = np.stack([flat & 15, flat >> 4], 1).reshape(-1)
        where = f"the tensor of the storage {key}"
        if len(sizes) != len(strides) or offset < 0 or any(n < 0 for n in (*sizes, *strides)):
            raise damaged(self.file, f"{where} has the impossible shape {tuple(sizes)}")
        last = offset + sum((n - 1) * s for n, s in zip(sizes, strides))
        if 0 in sizes:
            array = flat[:0].reshape(sizes)
        elif last >= flat.size:
            raise damaged(self.file, f"{where} has {flat.size} elements, but its shape {tuple(sizes)} needs {last + 1}")
        else:
            self.budget.take_bytes(math.prod(sizes) * dtype.itemsize, "laying its weights out")
            steps = [s * dtype.itemsize for s in strides]
            view = np.lib.stride_tricks.as_strided(flat[offset:], sizes, steps, writeable=False)
            array = np.ascontiguousarray(view).reshape(sizes)
        tensor = Stored(array, self.scheme(scheme) if scheme is not None else None)
        if scheme is None:
            self.tensors[same] = tensor
        return tensor

    def scheme(self, scheme: Any) -> Quant:
        """Scales and zero points of a quantised tensor."""
        name, scale, zero, *axis = scheme
        if isinstance(name, _Name) and name.text == "torch per_tensor_affine":
            return Quant.of(scale, zero)
        if not isinstance(scale, Stored) or not isinstance(zero, Stored):
            raise self.wrong("has a quantised tensor of another kind")
        is_integer = zero.array.dtype.kind in "iu"  # Rows of tables have zero points that are real numbers.
        return Quant(scale.array.astype(np.float32), zero.array.astype(np.int32 if is_integer else np.float32), int(axis[0]))

    def persistent(self) -> None:
        """The storage that the text "storage", a storage class and a key describe."""
        what, kind, key, _, count = self.stack.pop()
        if what != "storage" or not isinstance(kind, _Name) or not isinstance(key, str):
            raise self.wrong("refers to something that is no storage")
        short = kind.text.partition(" ")[2]
        if short not in _STORAGES:
            raise self.wrong(f"has a storage of the class {short}, which Relay lacks")
        self.stack.append((_STORAGES[short], key, count))

    def items(self, pairs: list[Any]) -> None:
        """Put pairs into a dict."""
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise self.wrong("is damaged")
        target.update(zip(pairs[::2], pairs[1::2], strict=True))

    def extend(self, values: list[Any]) -> None:
        """Append to a list."""
        if not isinstance(self.stack[-1], list):
            raise self.wrong("is damaged")
        self.stack[-1].extend(values)

    def top(self, count: int) -> list[Any]:
        """Take values from the stack."""
        if len(self.stack) < count:
            raise self.wrong("is damaged")
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def again(self, value: Any) -> None:
        """Push a value of the memo. Lists in lists can double with each use, so all that is in them counts."""
        count_parts(self.budget, value)
        self.stack.append(value)

    def put(self, at: int) -> None:
        self.memo[at] = self.stack[-1]


_STEPS: dict[str, Callable[[Unpickler, Any], Any]] = {
    "PROTO": lambda u, a: None,
    "FRAME": lambda u, a: None,
    "MARK": lambda u, a: u.push(_Mark()),
    "NONE": lambda u, a: u.push(None),
    "NEWTRUE": lambda u, a: u.push(True),
    "NEWFALSE": lambda u, a: u.push(False),
    "EMPTY_TUPLE": lambda u, a: u.push(()),
    "EMPTY_LIST": lambda u, a: u.push([]),
    "EMPTY_DICT": lambda u, a: u.push({}),
    "TUPLE": lambda u, a: u.push(tuple(u.marked())),
    "TUPLE1": lambda u, a: u.push(tuple(u.top(1))),
    "TUPLE2": lambda u, a: u.push(tuple(u.top(2))),
    "TUPLE3": lambda u, a: u.push(tuple(u.top(3))),
    "GLOBAL": lambda u, a: u.name(a),
    "NEWOBJ": lambda u, a: u.new(),
    "BUILD": lambda u, a: u.build(),
    "REDUCE": lambda u, a: u.reduce(),
    "BINPERSID": lambda u, a: u.persistent(),
    "SETITEMS": lambda u, a: u.items(u.marked()),
    "SETITEM": lambda u, a: u.items(u.top(2)),
    "APPENDS": lambda u, a: u.extend(u.marked()),
    "APPEND": lambda u, a: u.extend(u.top(1)),
    "BINPUT": lambda u, a: u.put(a),
    "LONG_BINPUT": lambda u, a: u.put(a),
    "MEMOIZE": lambda u, a: u.put(len(u.memo)),
    "BINGET": lambda u, a: u.again(u.memo[a]),
    "LONG_BINGET": lambda u, a: u.again(u.memo[a]),
    "POP": lambda u, a: u.stack.pop(),
}


def _opcodes(data: bytes) -> Iterator[Any]:
    """The opcodes of a pickle. Texts with unknown escapes, which torch does not write, give no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield from pickletools.genops(data)


__all__ = ["Unpickler"]
