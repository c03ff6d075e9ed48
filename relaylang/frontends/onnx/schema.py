"""A layer against the schema that ONNX has for its operator: operands, attributes, element types, and shapes.

The number of operands and the kinds of attributes are compared before a conversion. Element types and shapes are compared
where a conversion failed, to name the fault: importers take more than a schema's version allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from relaylang.frontends.common import Builder
from relaylang.frontends.common.versions import Versions
from relaylang.frontends.onnx.tensors import DTYPES
from relaylang.ir import Expr, TensorType

#: AttributeProto.AttributeType as the messages call its values.
_KINDS = {
    1: "a number with a point",
    2: "a whole number",
    3: "a text",
    4: "a tensor",
    5: "a graph",
    6: "a list of numbers with points",
    7: "a list of whole numbers",
    8: "a list of texts",
    9: "a list of tensors",
    10: "a list of graphs",
    11: "a sparse tensor",
    12: "a list of sparse tensors",
    13: "a type",
    14: "a list of types",
}
#: Element types by number, and as schemas write them: `tensor(float)`.
_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
_TEXTS = {"float": "float32", "double": "float64", "float4e2m1": "float4_e2m1fn"}
#: Constants up to this size are shown to the inference of shapes.
_SMALL = 64
#: The versions of operator sets whose operators the tables know: in another version, an operator may have another meaning.
_OPSETS = {
    "": Versions("the version of the operator set ai.onnx", 1, 28),
    "ai.onnx.ml": Versions("the version of the operator set ai.onnx.ml", 1, 5),
}
#: The versions of ONNX's messages. 0 is that of a model which states none.
FORMS = Versions("the IR version", 0, 13)


def check_versions(model: Any, file: str) -> None:
    """Raise `RelayError` (R0807) where a model or a function in it is of a version of an operator set that is not known."""
    for part in (model, *model.functions):
        for opset in part.opset_import:
            known = _OPSETS.get("" if opset.domain == "ai.onnx" else opset.domain)
            if known is not None:
                known.refuse(opset.version, file)


@dataclass(frozen=True)
class _Form:
    """What a schema says about the form of a layer."""

    least: int
    most: int
    #: The operands' names, and whether each may be left out.
    operands: tuple[tuple[str, bool], ...]
    #: The attributes' kinds, and whether each must be stated.
    attributes: Mapping[str, tuple[int, bool]]

    def operand(self, index: int) -> str:
        """An operand's name: the last one stands for all further ones."""
        return self.operands[min(index, len(self.operands) - 1)][0] if self.operands else ""


def _schema(name: str, domain: str, version: int) -> Any:
    from onnx import defs

    try:
        return defs.get_schema(name, version, domain)
    except defs.SchemaError:
        return None


@cache
def _form(name: str, domain: str, version: int) -> _Form | None:
    schema = _schema(name, domain, version)
    if schema is None or schema.deprecated:
        return None
    optional = type(schema.inputs[0].option).Optional if schema.inputs else None
    operands = tuple([(i.name, i.option == optional) for i in schema.inputs])
    attributes = {n: (int(a.type.value), bool(a.required)) for n, a in schema.attributes.items()}
    return _Form(schema.min_input, schema.max_input, operands, attributes)


def wrong_form(proto: Any, domain: str, version: int, attributes: Mapping[str, Any]) -> str:
    """The mistake in a layer's number of operands or its attributes; "" for nothing, or an operator without a schema."""
    form = _form(proto.op_type, domain, version)
    if form is None:
        return ""
    count = len(proto.input)
    if count > form.most:
        return f"it has {count} operands, and the operator takes at most {form.most}"
    for index in range(max(form.least, count)):
        optional = index < count and (index >= form.least or form.operands[min(index, len(form.operands) - 1)][1])
        if not optional and (index >= count or not proto.input[index]):
            return f"the operand {index} ({form.operand(index)}) is missing"
    for name, (kind, required) in form.attributes.items():
        attribute = attributes.get(name)
        if attribute is None:
            if required:
                return f"the attribute {name} is missing; it is {_KINDS.get(kind, 'a value')}"
        elif attribute.type not in (0, kind) and kind:  # models of ONNX's first version state no kinds
            stated = _KINDS.get(attribute.type, "of an unknown kind")
            return f"the attribute {name} is {stated}; it must be {_KINDS.get(kind, 'another')}"
    return ""


def refusal(proto: Any, domain: str, version: int, operands: Sequence[Any], b: Builder) -> str:
    """Why the schema refuses operands of these types and shapes; "" where it does not, or there is no schema."""
    schema, form = _schema(proto.op_type, domain, version), _form(proto.op_type, domain, version)
    if schema is None or form is None:
        return ""
    return _wrong_types(schema, form, operands) or _wrong_shapes(schema, proto, operands, b)


def _wrong_types(schema: Any, form: _Form, operands: Sequence[Any]) -> str:
    allowed = {c.type_param_str: list(c.allowed_type_strs) for c in schema.type_constraints}
    for index, x in enumerate(operands):
        if not schema.inputs:
            break
        text = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
        texts = allowed.get(text, [text])
        if isinstance(x, Expr) and isinstance(x.checked_type, TensorType) and any(t.startswith("tensor(") for t in texts):
            dtypes = [_dtype(t) for t in texts if t.startswith("tensor(")]
            if x.checked_type.dtype not in dtypes:
                takes = ", ".join(dict.fromkeys(d for d in dtypes if d in _NUMBERS))
                said = f"the operand {index} ({form.operand(index)}) has elements of {x.checked_type.dtype}"
                return f"{said}; it takes {takes or 'none that Relay has'}"
    return ""


def _dtype(text: str) -> str:
    inner = text.removeprefix("tensor(").removesuffix(")")
    return _TEXTS.get(inner, inner.replace("float8e", "float8_e"))


def _write_type(proto: Any, ty: TensorType) -> None:
    """A tensor's type as ONNX has it; extents that are not known have no value."""
    proto.elem_type = _NUMBERS[ty.dtype]
    proto.shape.SetInParent()
    for extent in ty.shape:
        dim = proto.shape.dim.add()
        if isinstance(extent, int):
            dim.dim_value = extent


def _wrong_shapes(schema: Any, proto: Any, operands: Sequence[Any], b: Builder) -> str:
    """What ONNX's own inference of shapes says against a layer."""
    from onnx import TypeProto, numpy_helper, shape_inference

    types, data = {}, {}
    for name, x in zip(proto.input, operands):
        if not name:
            continue
        if not isinstance(x, Expr) or not isinstance(x.checked_type, TensorType) or x.checked_type.dtype not in _NUMBERS:
            return ""
        types[name] = TypeProto()
        _write_type(types[name].tensor_type, x.checked_type)
        value = b.value(x)
        if value is not None and value.size <= _SMALL and value.dtype.kind in "biuf":
            data[name] = numpy_helper.from_array(value, name)
    if any(a.ref_attr_name or a.HasField("g") for a in proto.attribute):
        return ""
    # A version of the inference divides by these.
    if any(a.name in ("strides", "dilations", "kernel_shape", "block_size", "blocksize") and 0 in a.ints for a in proto.attribute):
        return ""
    try:
        shape_inference.infer_node_outputs(schema, proto, types, data)
    except shape_inference.InferenceError as wrong:
        said = " ".join(str(wrong).split())
        while said.startswith(("[", "(")):  # its marks: "[ShapeInferenceError] (op_type:Conv): "
            said = said[said.index("]" if said[0] == "[" else ")") + 1 :].lstrip(": ")
        return f"ONNX's inference of shapes refuses it: {said[:1].lower()}{said[1:200].rstrip('.')}"
    except Exception:  # its bindings convert what the layer holds, and fail in many ways
        pass
    return ""


__all__ = ["FORMS", "check_versions", "refusal", "wrong_form"]
