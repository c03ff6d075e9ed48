"""Protocol-buffer messages from tables of public field numbers: no generated code, and a descriptor pool for each format.

A table has a line for each message or enumeration, which indented lines continue:

    GraphDef: node 1 NodeDef*; library 2 FunctionDefLibrary; version 3 int32
    AttrValue: s 2 bytes @value; i 3 int64 @value
    NodeDef: name 1 string; attr 5 {string AttrValue}
    enum DataType: DT_INVALID 0; DT_FLOAT 1
    enum Pooling.Method: MAX 0; AVE 1
    Pooling: method 1 Pooling.Method =MAX

`*` repeats a field, `@` puts it into a oneof, and braces make a map. Types are those of protobuf, or names in the table.
An enumeration may be one of a message. In messages of proto2, `=` gives a field its default value.
Fields that a table lacks are read as unknown ones.
"""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common.files import damaged, need_package

#: The numbers of protobuf's types.
_KINDS = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed64": 6,
    "fixed32": 7,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
    "sint32": 17,
    "sint64": 18,
}
_MESSAGE, _ENUM = 11, 14
_OPTIONAL, _REPEATED = 1, 3


def messages(table: str, package: str, extra: str, syntax: str = "proto3") -> dict[str, Any]:
    """The classes of a table's messages by name. Raises `RelayError` (R0803) where protobuf is missing; `extra` brings it.

    With the syntax "proto2", fields have default values, and a message knows which of its fields are set.
    """
    need_package("google.protobuf", extra, f"importing {extra}")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax=syntax)
    lines = [line.split(":", 1) for line in table.replace("\n    ", " ").splitlines() if ":" in line]
    enums = {head.split()[1] for head, _ in lines if head.startswith("enum ")}
    descriptors = {head.strip(): file.message_type.add(name=head.strip()) for head, _ in lines if not head.startswith("enum ")}
    for head, body in lines:
        fields = [field.split() for field in body.split(";") if field.strip()]
        if head.startswith("enum "):
            owner, _, name = head.split()[1].rpartition(".")
            values = (descriptors[owner] if owner else file).enum_type.add(name=name)
            for name, number in fields:
                values.value.add(name=name, number=int(number))
        else:
            _message(descriptors[head.strip()], fields, package, enums)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{m.name}")) for m in file.message_type}


def _message(descriptor: Any, fields: list[list[str]], package: str, enums: set[str]) -> None:
    groups: dict[str, int] = {}
    for name, number, *words in fields:
        group = words.pop()[1:] if words[-1].startswith("@") else ""
        default = words.pop()[1:] if words[-1].startswith("=") else ""
        kind = " ".join(words)
        field = descriptor.field.add(name=name, number=int(number), label=_OPTIONAL)
        if default:
            field.default_value = default
        if kind.startswith("{"):
            field.label = _REPEATED
            entry = descriptor.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
            entry.options.map_entry = True
            for at, (key, part) in enumerate(zip(("key", "value"), kind.strip("{}").split()), 1):
                _typed(entry.field.add(name=key, number=at, label=_OPTIONAL), part, package, enums)
            _typed(field, f"{descriptor.name}.{entry.name}", package, enums)
            continue
        if kind.endswith("*"):
            field.label = _REPEATED
        _typed(field, kind.rstrip("*"), package, enums)
        if group:
            if group not in groups:
                groups[group] = len(groups)
                descriptor.oneof_decl.add(name=group)
            field.oneof_index = groups[group]


def _typed(field: Any, kind: str, package: str, enums: set[str]) -> None:
    field.type = _KINDS.get(kind, _ENUM if kind in enums else _MESSAGE)
    if kind not in _KINDS:
        field.type_name = f".{package}.{kind}"


def parsed(kind: Any, data: bytes, file: str, what: str) -> Any:
    """A message from its bytes. Raises `RelayError` (R0802) where they are no such message; `what` names it."""
    from google.protobuf.message import DecodeError

    message = kind()
    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError):
        raise damaged(file, f"{what} is cut short or damaged") from None
    return message


def parsed_text(kind: Any, data: bytes, file: str, what: str) -> Any:
    """A message from protobuf's text format. Raises `RelayError` (R0802) with the line where the text is wrong."""
    from google.protobuf import text_format

    message = kind()
    try:
        text_format.Parse(data.decode("utf-8"), message, allow_unknown_field=True)
    except text_format.ParseError as wrong:
        line = wrong.GetLine()
        raise damaged(file, f"{what} is wrong{f' in line {line}' if line else ''}") from None
    except (UnicodeDecodeError, RecursionError, ValueError, TypeError, AttributeError):
        raise damaged(file, f"{what} is damaged") from None
    return message


__all__ = ["messages", "parsed", "parsed_text"]
