from __future__ import annotations

import base64
import json
import re
import struct

import ml_dtypes
import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.diagnostics.source import SourceFile
from relaylang.ir import ANY, Constant, Function, GlobalVar, Tuple, const
from relaylang.ir.structural import structural_diff
from relaylang.passes.devices.virtual_device import VirtualDevice
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text
from relaylang.syntax.metadata import MetaNode, load_metadata
from relaylang.syntax.metadata_writer import save_metadata
from relaylang.syntax.tensorblob import BlobError, read_blob, write_blob
from relaylang.typing import infer

# What TVM 0.16 wrote for a zero-dimensional uint8 constant and one of shape (3,).
BLOBS = {
    "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAEIAQABAAAAAAAAAAM=": np.array(3, "uint8"),
    "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAAIAQADAAAAAAAAAAMAAAAAAAAAAAEC": np.arange(3, dtype="int8"),
}


def document(nodes: list[dict], blobs: list[str] = (), root: int = 1) -> str:
    return json.dumps({"root": root, "nodes": [{"type_key": ""}, *nodes], "b64ndarrays": list(blobs)})


def constants(*blobs: str) -> str:
    nodes = [{"type_key": "Map", "keys": ["relay.Constant"], "data": [2]}, {"type_key": "Array", "data": [3]}]
    nodes += [{"type_key": "relay.Constant", "attrs": {"data": str(i)}} for i in range(len(blobs))]
    return document(nodes, blobs)


def message(text: str) -> str:
    with pytest.raises(RelayError) as caught:
        load_metadata(text)
    [said] = caught.value.diagnostics
    assert said.code == "R0010"
    return said.title


@pytest.mark.parametrize(("text", "array"), BLOBS.items())
def test_tensors_as_tvm_writes_them(text: str, array: np.ndarray) -> None:
    [found] = load_metadata(constants(text))["relay.Constant"]
    assert found.data.dtype == array.dtype and found.data.shape == array.shape
    assert found.data.tobytes() == array.tobytes()
    assert not found.data.flags.writeable
    assert base64.b64encode(write_blob(array)).decode() == text


def test_the_text_is_tvms() -> None:
    values = [Constant(np.arange(3, dtype="int8")), Constant(np.array(3, "uint8"))]
    text = save_metadata({"relay.Constant": values})
    head, _, blobs = text.partition('"b64ndarrays"')
    expected = """{
  "root": 1, 
  "nodes": [
    {
      "type_key": ""
    }, 
    {
      "type_key": "Map", 
      "keys": [
        "relay.Constant"
      ], 
      "data": [2]
    }, 
    {
      "type_key": "Array", 
      "data": [3, 6]
    }, 
    {
      "type_key": "relay.Constant", 
      "attrs": {
        "_checked_type_": "0", 
        "data": "0", 
        "span": "0", 
        "virtual_device_": "4"
      }
    }, 
    {
      "type_key": "VirtualDevice", 
      "attrs": {
        "device_type_int": "-1", 
        "memory_scope": "5", 
        "target": "0", 
        "virtual_device_id": "-1"
      }
    }, 
    {
      "type_key": "runtime.String"
    }, 
    {
      "type_key": "relay.Constant", 
      "attrs": {
        "_checked_type_": "0", 
        "data": "1", 
        "span": "0", 
        "virtual_device_": "4"
      }
    }
  ], 
  """  # noqa: W291
    assert head == expected
    first, second = sorted(BLOBS)
    assert blobs == f': [\n    "{second}", \n    "{first}"\n  ], \n  "attrs": {{"tvm_version": "0.16.dev0"}}\n}}'


@pytest.mark.parametrize(
    "dtype",
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool"],
)
def test_every_element_type(dtype: str) -> None:
    for array in (np.array(1, dtype), np.ones((2, 3), dtype), np.zeros((0, 4), dtype)):
        [found] = load_metadata(save_metadata({"relay.Constant": [Constant(array)]}))["relay.Constant"]
        assert (found.data.dtype, found.data.shape, found.data.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_bfloat16_float8_and_big_endian() -> None:
    for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        array = np.arange(4).astype(kind)
        assert read_blob(write_blob(array))[0].tobytes() == array.tobytes()
    assert read_blob(write_blob(np.arange(3, dtype=">i4")))[0].tolist() == [0, 1, 2]
    with pytest.raises(BlobError, match="complex64"):
        write_blob(np.zeros(2, "complex64"))


def test_values_of_every_kind() -> None:
    values = [1, 2**40, 2.5, True, "a", 'q"\n', "é", None, ANY, [1, [2]], {"k": "v"}, np.int8(3), np.float64(0.1)]
    found = load_metadata(save_metadata({"x": values, "GlobalVar": [GlobalVar("g")]}))
    assert found["x"] == values
    assert [type(v) for v in found["x"]][11:] == [np.int8, np.float64]
    assert found["GlobalVar"][0].name_hint == "g"


def test_unknown_nodes_are_kept_and_written_again() -> None:
    nodes = [
        {"type_key": "Map", "keys": ["relay.Weird"], "data": [2]},
        {"type_key": "Array", "data": [3]},
        {"type_key": "relay.Weird", "attrs": {"name": "4", "flag": "0"}},
        {"type_key": "runtime.String", "repr_str": "hello"},
    ]
    section = document(nodes)
    [node] = load_metadata(section)["relay.Weird"]
    assert isinstance(node, MetaNode) and node.attrs == {"name": "4", "flag": "0"}
    assert node.values({}) == {"name": "hello", "flag": 0}
    text = '#[version = "0.0.5"]\ndef @f = meta[relay.Weird][0]\n#[metadata]\n' + section
    mod = parse(text).module
    once = astext(mod)
    again = parse(once).module
    assert structural_diff(mod, again) is None
    assert astext(again) == once
    kept = again["f"].attrs["external"]
    assert kept.values({})["name"] == "hello"


def test_holes_in_a_section_are_missing_values() -> None:
    section = save_metadata({"relay.Constant": [None, Constant(np.arange(2))]})
    result = parse("(meta[relay.Constant][0], meta[relay.Constant][1])\n#[metadata]\n" + section)
    assert [type(f).__name__ for f in result.expr.fields] == ["MetaRef", "Constant"]


def test_a_missing_value_and_a_constant_beside_it() -> None:
    missing = parse("meta[relay.Constant][0] /* ty=int8 */").expr
    text = astext(Function([], Tuple([missing, Constant(np.arange(2)), const(1)])))
    again = parse(text).expr.body.fields
    assert type(again[0]).__name__ == "MetaRef" and again[0].index == 0
    assert again[1].data.tolist() == [0, 1]


def _blob(shape: list[int], code: int = 0, bits: int = 8, nbytes: int | None = None, data: bytes = b"", ndim=None) -> str:
    head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, len(shape) if ndim is None else ndim, code, bits, 1)
    claimed = len(data) if nbytes is None else nbytes
    return base64.b64encode(head + struct.pack(f"<{len(shape)}qq", *shape, claimed) + data).decode()


@pytest.mark.parametrize(
    ("blob", "says"),
    [
        ("!!!", "tensor 0 is not base64"),
        ("AAAA", "tensor 0: it ends within a tensor's header"),
        (base64.b64encode(b"\0" * 64).decode(), "a tensor begins with 0x0000000000000000"),
        (_blob([2**40], nbytes=2**40), f"a tensor of {2**40} bytes is cut off after 0"),
        (_blob([2**62, 2**62], nbytes=5), "claims 5 bytes, where it takes"),
        (_blob([-1]), "a tensor has the shape (-1,)"),
        (_blob([1], data=b"ab"), "claims 2 bytes, where it takes 1"),
        (_blob([], ndim=2**30), "a tensor claims the rank 1073741824"),
        (_blob([0, 2**62, 2**62]), "a tensor has the shape (0, 4611686018427387904, 4611686018427387904)"),
        (_blob([1], code=0, bits=3, data=b"a"), "a tensor has elements of int3, which cannot be read"),
        (_blob([1], data=b"a") + "", ""),
    ],
)
def test_damaged_tensors(blob: str, says: str) -> None:
    if not says:
        assert load_metadata(constants(blob))["relay.Constant"][0].data.tolist() == [97]
    else:
        assert says in message(constants(blob))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ("[]", "it is not a map"),
        ("{}", "it has no list `nodes`"),
        ('{"root": 7, "nodes": [{}]}', "it refers to node 7 of 1"),
        ('{"root": "x", "nodes": [{}]}', "`x` is not the number of a node"),
        ('{"root": 0, "nodes": [{}]}', "its root is not a map"),
        ('{"root": 0, "nodes": [5]}', "node 0 is not a node"),
        (document([{"type_key": "Array", "data": [1]}]), "node 1 contains itself"),
        (document([{"type_key": "Map", "keys": ["a"], "data": [0, 0]}]), "other keys than values"),
        (document([{"type_key": "Map", "keys": ["a"], "data": [0]}]), "its root is not a map"),
        (document([{"type_key": "relay.Constant", "attrs": {"data": "5"}}]), "it refers to tensor `5` of 0"),
        (document([{"type_key": "IntImm", "attrs": {"dtype": "int8", "value": "300"}}]), "is not a number of type"),
        (document([{"type_key": "runtime.String", "repr_b64": "AAAA"}]), "a string is cut off"),
        ('{"root": ' + "9" * 5000 + ', "nodes": [{}]}', ""),
    ],
)
def test_damaged_sections(text: str, says: str) -> None:
    assert says in message(text)


def test_the_place_of_a_json_error() -> None:
    source = SourceFile("f.relay", 'fn () { () }\n#[metadata]\n{"root": 1,\n oops}')
    begin = source.text.index("{", 20)
    with pytest.raises(RelayError) as caught:
        load_metadata(source.text[begin:], source, begin)
    assert str(caught.value).startswith("f.relay:4:2: error[R0010]: the metadata section cannot be read: it is not JSON")


def _devices() -> str:
    """A section with three virtual devices, of which two share the name of their memory."""
    devices: list[dict[str, object]] = [
        {
            "type_key": "VirtualDevice",
            "attrs": {"device_type_int": kind, "memory_scope": scope, "target": "0", "virtual_device_id": number},
        }
        for kind, scope, number in (("1", "6", "0"), ("2", "7", "0"), ("2", "7", "1"))
    ]
    names = [{"type_key": "runtime.String", "repr_str": "global"}, {"type_key": "runtime.String", "repr_str": ""}]
    head = [{"type_key": ""}, {"type_key": "Map", "keys": ["VirtualDevice"], "data": [2]}, {"type_key": "Array", "data": [3, 4, 5]}]
    return "\n#[metadata]\n" + json.dumps({"root": 1, "nodes": [*head, *devices, *names], "b64ndarrays": [], "attrs": {}})


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%x {virtual_device=D2}: int32, %y {virtual_device=D0}: int32, virtual_device=D1) {\n"
        "  on_device(add(%x, %y), virtual_device=D0, constrain_result=True)\n}",
        "def @main(%x {virtual_device=D1}: int32, virtual_device=D1) {\n"
        "  %0 = device_copy(%x, src_virtual_device=D1, dst_virtual_device=D0);\n"
        "  let %z {virtual_device=D2} = %0;\n  add(%z, on_device(%z, virtual_device=D2))\n}",
        "free_var %x {virtual_device=D1};\nadd(%x, %x)",
        "free_var %x {virtual_device=D2}: Tensor[(2), float32];\nlet %y {virtual_device=D0}: float32 = %x;\n"
        "let %z {virtual_device=D2}: (float32, int32) = %x;\nadd(%y, %z)",
    ],
    ids=["parameters", "a let and a copy", "a free variable", "types"],
)
def test_several_virtual_devices(text: str) -> None:
    """Printing numbers the devices anew, by where each is first met, and is a fixed point in both styles."""
    whole = '#[version = "0.0.5"]\n' + re.sub(r"D(\d)", r"meta[VirtualDevice][\1]", text) + "\n" + _devices()
    node = parse(whole).value
    for style in ("lossless", "tvm"):
        printed = astext(node, style=style)
        again = parse(printed).value
        assert structural_diff(node, again, map_free_vars=True) is None and astext(again, style=style) == printed
    made = format_text(whole)
    assert format_text(made) == made and made.split("#[metadata]")[1] == whole.split("#[metadata]")[1]


def test_braces_behind_a_variable_hold_its_device_only() -> None:
    for text in ("let %x {device=1} = 1; %x", "free_var %x {device=1}; %x"):
        with pytest.raises(RelayError, match="unknown attribute `device`"):
            parse(text)


def test_the_section_of_tvm_0_6() -> None:
    """`METADATA:` begins it; maps, variables and strings have other type keys, and strings stand in place."""
    blob = base64.b64encode(write_blob(np.array([1.5, 2.0], "float32"))).decode()
    nodes = [
        {"type_key": ""},
        {"type_key": "StrMap", "keys": ["Variable", "relay.Constant", "StringImm"], "data": [2, 4, 6]},
        {"type_key": "Array", "data": [3]},
        {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "n"}},
        {"type_key": "Array", "data": [5]},
        {"type_key": "relay.Constant", "attrs": {"_checked_type_": "0", "data": "0", "span": "0"}},
        {"type_key": "Array", "data": [7]},
        {"type_key": "StringImm", "attrs": {"dtype": "handle", "value": "here"}},
    ]
    section = json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": [blob], "attrs": {"tvm_version": "0.6.0"}})
    body = "fn (%x: Tensor[(meta[Variable][0], 2), float32], %b: Tensor[(meta[Variable][0], 2, 2), float32]) {\n"
    text = f"v0.0.4\n{body}  %0 = nn.batch_matmul(%b, %b);\n  (add(%x, meta[relay.Constant][0]), %0)\n}}\nMETADATA:\n{section}"
    node = parse(text).value
    assert infer(node) == []
    n = node.params[0].type_annotation.shape[0]
    assert (n.name_hint, n.type_key) == ("n", "tir.Var") and node.params[1].type_annotation.shape[0] is n
    assert node.body.fields[0].args[1].data.tolist() == [1.5, 2.0] and node.body.fields[1].attrs.transpose_b is True
    again = parse(astext(node)).value
    assert structural_diff(node, again, map_free_vars=True) is None and "METADATA" not in astext(node)
    made = format_text(text)
    assert format_text(made) == made and made.startswith('#[version = "0.0.5"]\n') and "\n#[metadata]\n" in made


@pytest.mark.parametrize(
    "text",
    [
        "fn (%x {virtual_device=meta[VirtualDevice][0]}) { on_device(%x, device_type=2) }",
        "let %x {virtual_device=meta[VirtualDevice][1]} = 1; on_device(%x, device_type=2)",
        "free_var %x {virtual_device=meta[VirtualDevice][0]};\non_device(%x, device_type=2)",
        "on_device(on_device(%x, virtual_device=meta[VirtualDevice][0]), device_type=2)",
        "fn (a=[meta[VirtualDevice][0]]) { on_device(1, device_type=2) }",
        'fn (%f) { %f(on_device(1, device_type=2), a={"k": [meta[VirtualDevice][0]]}) }',
    ],
)
def test_what_is_missing_keeps_its_number(text: str) -> None:
    """A value that is put into the section takes no place that the text refers to and does not have."""
    node = parse(text).value
    printed = astext(node)
    again = parse(printed).value
    assert structural_diff(node, again, map_free_vars=True) is None and astext(again) == printed


def _every_kind() -> str:
    """A section with a value of each kind."""
    nodes: list[dict] = []

    def node(key: str, **attrs: object) -> int:
        nodes.append({"type_key": key, "attrs": {name: str(value) for name, value in attrs.items()}})
        return len(nodes) + 1

    def string(text: str) -> int:
        nodes.append({"type_key": "runtime.String", "repr_str": text})
        return len(nodes) + 1

    def array(*items: int) -> int:
        nodes.append({"type_key": "Array", "data": list(items)})
        return len(nodes) + 1

    var = {"type_annotation": 0, "span": 0, "_checked_type_": 0, "virtual_device_": 0}
    values = {
        "relay.Var": node("relay.Var", vid=node("relay.Id", name_hint=string("q")), **var),
        "relay.Call": node("relay.Call", op=0, args=0, attrs=0, type_args=0, span=0),
        "relay.Function": node("relay.Function", params=array(), body=0),
        "relay.attrs.SoftmaxAttrs": node("relay.attrs.SoftmaxAttrs", axis=1),
        "VirtualDevice": node("VirtualDevice", device_type_int=1, virtual_device_id=0, target=0, memory_scope=0),
        "Op": node("Op"),
        "Unheard": node("Unheard", axis=1),
        "IntImm": node("IntImm", dtype="int32", value=3),
        "FloatImm": node("FloatImm", dtype="float32", value=3),
        "runtime.String": string("hello"),
        "Array": array(),
        "Map": node("Map"),
        "GlobalVar": node("GlobalVar", name_hint=string("f")),
        "tir.Any": node("tir.Any", dtype="int32"),
        "tir.Var": node("tir.Var", dtype="int32", name=string("n")),
        "TypeVar": node("TypeVar", name_hint=string("A"), kind=0),
        "relay.TensorType": node("relay.TensorType", dtype="int32", shape=array()),
    }
    lists = [array(at) for at in values.values()]
    root = {"type_key": "Map", "keys": list(values), "data": lists}
    return "\n#[metadata]\n" + json.dumps({"root": 1, "nodes": [{"type_key": ""}, root, *nodes], "b64ndarrays": []})


_SECTION = _every_kind()
_KINDS = json.loads(_SECTION.partition("#[metadata]")[2])["nodes"][1]["keys"]
_EXPRESSIONS = (
    "M",
    "(M)",
    "(M, %x)",
    "(%x, M)",
    "M.0",
    "add(M, %x)",
    "add(%x, M)",
    "nn.softmax(%x, M)",
    "M(%x)",
    "%x(M)",
    "M + %x",
    "%x * M",
    "-M",
    "if (M) { %x } else { %x }",
    "if (True) { M } else { %x }",
    "if (True) { %x } else { M }",
    "let %y = M; %y",
    "let %y = %x; M",
    "%0 = M; %0",
    "M; %x",
    "ref(M)",
    "ref_read(M)",
    "ref_write(M, M)",
    "fn (%y: int32) { M }",
    "match (M) { %y => %y }",
    "match (%x) { %y => { M } }",
    "nn.softmax(%x, axis=M)",
    "let %y {virtual_device=M} = %x; %y",
)
_TYPES = ("M", "(M, int32)", "fn (M) -> M", "ref(M)", "Tensor[(M, 2), float32]", "L[M]")


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", _KINDS)
def test_every_value_of_the_section_in_every_place_is_read_or_reported_there(kind: str) -> None:
    meta = f"meta[{kind}][0]"
    parameters = "%x: Tensor[(2, 2), float32]"
    place = re.compile(r"\bM\b")
    texts = [f"def @main({parameters}) {{ {place.sub(meta, text)} }}" for text in _EXPRESSIONS]
    texts += [f"def @main(%x: {place.sub(meta, text)}) {{ %x }}" for text in _TYPES]
    texts += [f"def @main({parameters}, virtual_device={meta}) {{ %x }}", f"def @g = {meta}"]
    read = 0
    for text in texts:
        try:
            module = parse("type L[A] { Cons(A, L[A]), Nil, }\n" + text + _SECTION).module
        except RelayError as wrong:
            assert all(d.span is not None and d.code != "R0900" for d in wrong.diagnostics), (text, str(wrong))
            continue
        read += 1
        assert all(d.code != "R0900" for d in infer(module)), text
    assert read < len(texts)


def test_a_node_that_is_no_expression_is_named_where_it_stands() -> None:
    with pytest.raises(RelayError) as caught:
        parse("def @main() {\n  meta[relay.Var][0]\n}" + _SECTION)
    [said] = caught.value.diagnostics
    assert said.title == "`meta[relay.Var][0]` holds a node of the class relay.Var and is not an expression"
    assert said.span is not None and (said.span.line, said.span.column) == (2, 3)


# ---- values as TVM prints them where it writes no section

_LLVM = "Target(kind='llvm', keys={'cpu'}, host=Target(kind='llvm', keys={'cpu'}))"
_CUDA = (
    "Target(id=55d1a2b3c4d0, kind='cuda', tag='nvidia/x', keys={'cuda', 'gpu'}, attrs={'arch': \"sm_80\", 'max_threads': 1024, "
    "'libs': [\"cublas\", \"cudnn\"], 'a': (bool)1, 'b': (int64)-5, 'c': T.bool(True), 'd': T.int64(7)}, host=" + _LLVM + ")"
)


@pytest.mark.parametrize(
    ("written", "kind", "number", "scope"),
    [
        ("VirtualDevice(?)", -1, -1, ""),
        ("VirtualDevice(device_type=1)", 1, -1, ""),
        ("VirtualDevice(device_type=2, virtual_device_id=3, memory_scope='global')", 2, 3, "global"),
        (f"VirtualDevice(device_type=1, virtual_device_id=0, target={_LLVM})", 1, 0, ""),
        (f"VirtualDevice(device_type=2, virtual_device_id=0, target={_CUDA}, memory_scope='global')", 2, 0, "global"),
        ("VirtualDevice(target=Target(kind='llvm'))", -1, -1, ""),
        ("SEScope(?, id=9483)", -1, -1, ""),
        (f"SEScope(device_type=1, virtual_device_id=0, target={_LLVM}, id=94839284)", 1, 0, ""),
    ],
)
def test_a_virtual_device_reads_as_tvm_prints_it_without_a_section(written: str, kind: int, number: int, scope: str) -> None:
    text = (
        f"def @f(%x {{virtual_device={written}}}: int32, virtual_device={written}) {{\n"
        f"  let %y {{virtual_device={written}}}: int32 = on_device(%x, virtual_device={written}, constrain_result=True);\n"
        f"  device_copy(%y, src_virtual_device={written}, dst_virtual_device={written})\n}}\n"
    )
    module = parse(text).module
    device = VirtualDevice.of(module["f"].params[0].virtual_device)
    assert (device.device_type, device.virtual_device_id, device.memory_scope) == (kind, number, scope)
    for again in (astext(module), format_text(text)):
        assert structural_diff(module, parse(again).module) is None


def test_a_target_keeps_what_its_text_says() -> None:
    device = parse(f"fn (%x, a=VirtualDevice(device_type=2, target={_CUDA})) {{ %x }}").expr.attrs["a"]
    target = device.parts["target"]
    kind, host = target.parts["kind"], target.parts["host"]
    assert (kind.parts["name"], kind.attrs["default_device_type"]) == ("cuda", "2")
    assert (target.parts["tag"], target.parts["keys"]) == ("nvidia/x", ["cuda", "gpu"])
    assert target.parts["attrs"] == {
        "arch": "sm_80",
        "max_threads": 1024,
        "libs": ["cublas", "cudnn"],
        "a": True,
        "b": -5,
        "c": True,
        "d": 7,
    }
    assert host.parts["kind"].parts["name"] == "llvm" and host.parts["host"].parts["keys"] == ["cpu"]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("Tarjet(kind='llvm')", "R0109"),
        ("Target(kind=3)", "R0109"),
        ("VirtualDevice(devicetype=3)", "R0203"),
        ("{'a': (foo)}", "R0109"),
        ("{'a': (int8)3000}", "R0109"),
        ("VirtualDevice(target=VirtualDevice(?))", "R0109"),
        ("T.int64(?)", "R0109"),
        ("VirtualDevice(device_type=True)", "R0109"),
        ("Target(kind='llvm', kind='c')", "R0205"),
        ("'open", "R0101"),
    ],
)
def test_wrong_values_of_that_form_are_reported(value: str, code: str) -> None:
    with pytest.raises(RelayError) as caught:
        parse(f"fn (%x, a={value}) {{ %x }}")
    assert caught.value.diagnostics[0].code == code and caught.value.diagnostics[0].span is not None


def test_quoted_names_and_null_read_as_tvm_prints_them() -> None:
    attrs = parse("fn (%x, a='main', c={'q': 'r', 's': (nullptr)}) { %x }").expr.attrs
    assert dict(attrs) == {"a": "main", "c": {"q": "r", "s": None}}
