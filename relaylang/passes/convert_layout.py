"""ConvertLayout: convolutions and pools in another layout, with as few transpositions as can be.

A value is kept in the layout in which it was made, and is brought into the other one only where something needs it
there. Element-wise operators, paddings, concatenations, biases and pools work in either, and follow their operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, Function, IRModule, Tuple, children, post_order, rebuild
from relaylang.ops import make_attrs
from relaylang.ops.record import Op
from relaylang.passes.build import op_call
from relaylang.passes.rewriting import per_function, static_shape, tensor_type
from relaylang.typing import infer

#: Which kernel layout goes with a data layout where none is asked for; depthwise kernels in NHWC are HWOI.
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO"}
_CONVS = frozenset({"nn.conv2d", "qnn.conv2d", "nn.conv2d_transpose"})
_POOLS = frozenset({"nn.max_pool2d", "nn.avg_pool2d", "nn.global_max_pool2d", "nn.global_avg_pool2d",
                    "nn.adaptive_max_pool2d", "nn.adaptive_avg_pool2d", "nn.upsampling", "image.resize2d"})  # fmt: skip
_UNARY = frozenset({"nn.relu", "nn.leaky_relu", "clip", "cast", "tanh", "sigmoid", "exp", "log", "sqrt", "rsqrt", "abs",
                    "negative", "round", "floor", "ceil", "erf", "copy", "nn.dropout"})  # fmt: skip
_BROADCAST = frozenset({"add", "subtract", "multiply", "divide", "maximum", "minimum"})


def convert_layout(mod: IRModule, desired_layouts: Mapping[str, Sequence[str]]) -> IRModule:
    """A typed module in which the named operators have the layouts `[data, kernel]` (or `[data]`); "default" leaves the
    kernel's to the data's. The result's types are to be found again. Raises `RelayError` for other layouts.
    """
    for name, layouts in desired_layouts.items():
        data = layouts[0] if layouts else ""
        if name not in _CONVS | _POOLS or data not in ("NCHW", "NHWC", "default"):
            raise RelayError(
                error(
                    "R0501",
                    f"ConvertLayout cannot bring {name} into {list(layouts)}",
                    notes=["layouts are NCHW and NHWC, for 2-D convolutions and pools"],
                )
            )
    return per_function(mod, lambda f: _Converter(desired_layouts, mod).convert(f))


def _axes(source: str, target: str) -> list[int]:
    return [source.index(c) for c in target]


class _Converter:
    def __init__(self, desired: Mapping[str, Sequence[str]], mod: IRModule) -> None:
        self.desired = desired
        self.mod = mod
        self.other: dict[int, tuple[Expr, str, str]] = {}  # old node -> the value in a layout, that, and its own layout
        self.done: dict[int, Expr] = {}

    def typed(self, expr: Expr) -> Expr:
        if expr.checked_type is None:
            infer(expr, fragment=True, module=self.mod)
        return expr

    def turned(self, expr: Expr, source: str, target: str) -> Expr:
        if source == target:
            return expr
        return self.typed(op_call("layout_transform", [expr], src_layout=source, dst_layout=target))

    def plain(self, old: Expr) -> Expr:
        """A value as it was."""
        if id(old) not in self.done:
            made, layout, own = self.other[id(old)]
            self.done[id(old)] = self.turned(made, layout, own)
        return self.done[id(old)]

    def within(self, old: Expr, own: str, target: str) -> Expr:
        """A value, whose layout was `own`, in the layout `target`."""
        known = self.other.get(id(old))
        if known is not None and known[1] == target and known[2] == own:
            return known[0]
        made = self.turned(self.plain(old), own, target)
        if known is None and own != target:
            self.other[id(old)] = (made, target, own)
        return made

    def convert(self, func: Function) -> Expr:
        for node in post_order(func):
            kids = children(node)
            if not kids:
                self.done[id(node)] = node
                continue
            made = self.call(node) if isinstance(node, Call) and isinstance(node.op, Op) else None
            if made is not None:
                self.other[id(node)] = made
                continue
            if isinstance(node, Tuple) and any(id(f) in self.other for f in node.fields):
                self.pending(node)
                continue
            new = rebuild(node, tuple([self.plain(c) for c in kids]))
            if new is not node:
                new.checked_type = node.checked_type
            self.done[id(node)] = new
        return self.plain(func)

    def pending(self, node: Tuple) -> None:
        """A tuple is built when something needs it as it was; a concatenation takes its fields."""
        made = Tuple([self.plain(f) for f in node.fields], node.span)
        made.checked_type = node.checked_type
        self.done[id(node)] = made

    def call(self, node: Call) -> tuple[Expr, str, str] | None:
        assert isinstance(node.op, Op)
        name = node.op.name
        ty = tensor_type(node)
        if ty is None or len(ty.shape) != 4:
            return None
        if name in _CONVS:
            return self.convolution(node, name)
        if name in _POOLS:
            return self.pool(node, name)
        known = next((self.other[id(a)] for a in node.args if id(a) in self.other), None)
        if name == "concatenate" and isinstance(node.args[0], Tuple):
            return self.concatenate(node, node.args[0])
        if known is None:
            return None
        _, layout, own = known
        if name in _UNARY and id(node.args[0]) in self.other:
            return self.again(node, [self.within(node.args[0], own, layout)]), layout, own
        if name == "nn.bias_add" and id(node.args[0]) in self.other:
            axis = layout.index(own[node.attrs.axis % 4])
            args = [self.within(node.args[0], own, layout), self.plain(node.args[1])]
            return self.again(node, args, axis=axis), layout, own
        if name == "nn.pad" and id(node.args[0]) in self.other:
            widths = [node.attrs.pad_width[i] for i in _axes(own, layout)]
            args = [self.within(node.args[0], own, layout), self.plain(node.args[1])]
            return self.again(node, args, pad_width=widths), layout, own
        if name in ("qnn.requantize", "qnn.quantize", "qnn.dequantize") and id(node.args[0]) in self.other:
            axis = layout.index(own[node.attrs.axis % 4])
            args = [self.within(node.args[0], own, layout), *[self.plain(a) for a in node.args[1:]]]
            return self.again(node, args, axis=axis), layout, own
        if name in _BROADCAST:
            operands = [self.operand(a, own, layout) for a in node.args]
            if all(o is not None for o in operands):
                return self.again(node, [o for o in operands if o is not None]), layout, own
        return None

    def operand(self, old: Expr, own: str, layout: str) -> Expr | None:
        """An operand that broadcasts to four axes, in a layout."""
        shape = static_shape(old.checked_type)
        if shape is None:
            return None
        if len(shape) == 4:
            return self.within(old, own, layout)
        if all(d == 1 for d in shape) or not shape:
            return self.plain(old) if len(shape) == 0 else self.reshaped(old, [1, 1, 1, 1])
        whole = [1] * (4 - len(shape)) + list(shape)
        return self.reshaped(old, [whole[i] for i in _axes(own, layout)]) if sum(d != 1 for d in whole) == 1 else None

    def reshaped(self, old: Expr, shape: list[int]) -> Expr:
        return self.typed(op_call("reshape", [self.plain(old)], newshape=shape))

    def again(self, node: Call, args: list[Expr], **changed: Any) -> Expr:
        attrs = node.attrs
        if changed:
            cls = type(attrs)
            attrs = make_attrs(cls, {**{n: getattr(attrs, n) for n in cls.schema}, **changed})
        return self.typed(Call(node.op, args, attrs, node.type_args, node.span))

    def convolution(self, node: Call, name: str) -> tuple[Expr, str, str] | None:
        attrs = node.attrs
        own, kernel = attrs.data_layout, attrs.kernel_layout
        asked = self.desired.get(name)
        target = own if not asked or asked[0] == "default" else asked[0]
        if own not in _KERNELS or sorted(kernel) != sorted("OIHW") or attrs.out_layout not in ("", None, own):
            return None
        if asked is None and not any(id(a) in self.other for a in node.args[:1]):
            return None
        wanted = asked[1] if asked and len(asked) > 1 else "default"
        if wanted == "default":
            wanted = _KERNELS[target] if target != own else kernel
            weight = static_shape(node.args[1].checked_type)
            depthwise = weight is not None and attrs.groups > 1 and weight[kernel.index("I")] == 1
            if target == "NHWC" and target != own and depthwise:
                wanted = "HWOI"
            if name == "nn.conv2d_transpose" and target != own:
                wanted = {"NCHW": "IOHW", "NHWC": "HWIO"}[target]
        if target == own and wanted == kernel and id(node.args[0]) not in self.other:
            return None
        if sorted(wanted) != sorted("OIHW"):
            raise RelayError(error("R0501", f"ConvertLayout: {wanted} is no kernel layout", node.span))
        weight_expr = self.turned(self.plain(node.args[1]), kernel, wanted)
        args = [self.within(node.args[0], own, target), weight_expr, *[self.plain(a) for a in node.args[2:]]]
        made = self.again(node, args, data_layout=target, kernel_layout=wanted, out_layout="")
        return made, target, own

    def pool(self, node: Call, name: str) -> tuple[Expr, str, str] | None:
        own = node.attrs.layout
        asked = self.desired.get(name)
        known = self.other.get(id(node.args[0]))
        target = asked[0] if asked and asked[0] != "default" else known[1] if known is not None else own
        if own not in _KERNELS or target == own or getattr(node.attrs, "out_layout", "") not in ("", None, own):
            return None
        args = [self.within(node.args[0], own, target), *[self.plain(a) for a in node.args[1:]]]
        return self.again(node, args, layout=target), target, own

    def concatenate(self, node: Call, fields: Tuple) -> tuple[Expr, str, str] | None:
        known = [self.other.get(id(f)) for f in fields.fields]
        first = known[0] if known else None
        if first is None or any(k is None or k[1:] != first[1:] for k in known):
            return None
        _, layout, own = first
        together = self.typed(Tuple([k[0] for k in known if k is not None]))
        return self.again(node, [together], axis=layout.index(own[node.attrs.axis % 4])), layout, own


