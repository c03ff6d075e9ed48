"""Lowers users' operators whose kernels are texts (`relaylang.kernels.operators`): each part of the text is a stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.kernel import AnchorLowering, BufTensor, Kernel, Recipe, Sink, Tensor, Value, unsupported
from relaylang.backends.cpu.lower.common import broadcast_at, result_types
from relaylang.backends.cpu.lower.scatter import pass_on, target_of
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, TensorType
from relaylang.kernels.legal import renamed
from relaylang.kernels.nest import Buf
from relaylang.kernels.operators import TextKernel
from relaylang.kernels.templates import Misfit, stages
from relaylang.ops.extensions import EXTENSIONS
from relaylang.ops.record import Op

#: What the names of a text begin with in compiled kernels.
_PREFIX = "v_"


def with_texts() -> frozenset[str]:
    """The added operators whose kernels are texts."""
    return frozenset([name for name, operator in EXTENSIONS.items() if isinstance(operator.kernel, TextKernel)])


def _kernel_of(call: Call) -> TextKernel | None:
    operator = EXTENSIONS.get(call.op.name) if isinstance(call.op, Op) else None
    return operator.kernel if operator is not None and isinstance(operator.kernel, TextKernel) else None


def recipe_of(call: Call) -> Any:
    """The lowering of a call with several results; None for others."""
    return _several if _kernel_of(call) is not None and not isinstance(call.checked_type, TensorType) else None


def anchor_of(call: Call) -> AnchorLowering | None:
    """The lowering of a call with one result; None for operators without a text."""
    return _one if _kernel_of(call) is not None else None


def _one(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    out = target_of(kernel, sink)
    _write(kernel, call, args, [out])
    pass_on(kernel, sink, out)


def _several(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    outs = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    _write(kernel, call, args, outs)
    return [BufTensor(out) for out in outs]


def _write(kernel: Kernel, call: Call, args: Sequence[Tensor], outs: Sequence[Buf]) -> None:
    text = _kernel_of(call)
    assert text is not None and isinstance(call.op, Op)
    template = text.template
    try:
        names = text.names([(a.shape, a.dtype) for a in args], call.attrs, [(o.shape, o.dtype) for o in outs])
        body = template.body(names)
    except Misfit as problem:
        raise unsupported(f"{call.op.name} {problem.message}", call) from None
    except RelayError as problem:
        first = problem.diagnostics[0]
        raise unsupported(f"the kernel of {call.op.name} cannot be compiled for this call: {first.title}", call, first.notes) from None
    buffers: dict[str, str] = {}
    for argument, tensor in zip(template.of("in"), args):
        if argument.broadcast:
            tensor = _broadcast(tensor, names[f"{argument.extents[0].text}..."])
        buffers[argument.name] = kernel.in_memory(tensor).name
    buffers |= {argument.name: out.name for argument, out in zip(template.of("out"), outs)}
    for argument, (shape, dtype) in zip(template.of("work"), template.results(names, "work")):
        buffers[argument.name] = kernel.buffer(shape, dtype).name
    for part in stages(renamed(body, buffers, _PREFIX)):
        kernel.stage(body=part)


def _broadcast(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    if tuple(tensor.shape) == tuple(shape):
        return tensor
    return Recipe(shape, tensor.dtype, lambda nest, index: broadcast_at(tensor, nest, index, shape))


__all__ = ["anchor_of", "recipe_of", "with_texts"]
