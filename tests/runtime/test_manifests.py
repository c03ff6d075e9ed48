"""Each value of each manifest is changed, goes, or comes twice. The archive is refused, or means the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from relaylang.backends import compile_module
from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.bare_metal.library_format import files as library_files
from relaylang.backends.bare_metal.reading import loads as load_library
from relaylang.backends.registry import parse_target
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.runtime import schema
from relaylang.runtime.artifact import loads, read_sealed, write_sealed
from relaylang.runtime.vm.file import unpacked
from relaylang.syntax import parse
from tests.runtime.test_tampered import changes
from tests.shared import ROOT

LISTS = """
type List { Nil, Cons(int32, List) }
def @total(%l: List) -> int32 { match (%l) { Nil => 0, Cons(%x, %rest) => add(%x, @total(%rest)) } }
def @main(%n: int32, %x: Tensor[(2, ?), float32]) -> (int32, Tensor[(2, ?), float32]) {
  let %f = fn (%y: int32) -> int32 { add(%y, %n) };
  (@total(Cons(%f(1), Nil)), nn.relu(add(%x, %x)))
}
"""


def module(text: str) -> IRModule:
    found = parse(text).module
    assert found is not None
    return found


@cache
def vm() -> bytes:
    return compile_vm(module(LISTS), native=False).content()


@cache
def ethosu() -> bytes:
    backend = pytest.importorskip("relaylang.backends.ethosu", reason="needs relaylang[ethosu]")
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    made = backend.compile(module((ROOT / "examples/ethosu_bars.relay").read_text()), {"accelerator": "ethos-u55-128"})
    return write_sealed(made.files())


@cache
def vta() -> bytes:
    text = 'def @main(%x: Tensor[(1, 16, 4, 4), int8]) { exp(cast(nn.max_pool2d(%x, pool_size=[2, 2]), dtype="float32")) }'
    return write_sealed(compile_module(module(text), "vta, c").files())


@cache
def library() -> bytes:
    text = "def @main(%x: Tensor[(2, 3), float32]) { (nn.relu(%x), add(%x, 1f)) }"
    return write_sealed(library_files([compile_bare_metal(module(text), parse_target("c"))]))


#: Each kind's archive, the file in it, and its reader.
KINDS: dict[str, tuple[Callable[[], bytes], str, Callable[[bytes], Any]]] = {
    "vm": (vm, "manifest.json", lambda content: unpacked(content, "net")),
    "ethos-u": (ethosu, "manifest.json", loads),
    "vta": (vta, "manifest.json", loads),
    "mlf": (library, "manifest.json", load_library),
    "mlf metadata": (library, "metadata.json", load_library),
}


#: Words of Python's own errors.
PYTHONS = ("object has no", "not subscriptable", "unhashable", "NoneType", "argument")


def shortened(data: Any) -> Any:
    """A record with the first items of its long lists alone: the others are of the same kind."""
    if isinstance(data, dict):
        return {name: shortened(value) for name, value in data.items()}
    return [shortened(item) for item in data[:3]] if isinstance(data, list) else data


@pytest.mark.sample(4)
@pytest.mark.parametrize("share", [pytest.param(1, marks=pytest.mark.sweep), 97])
@pytest.mark.parametrize("kind", KINDS)
def test_every_value(kind: str, share: int) -> None:
    make, name, read = KINDS[kind]
    files = read_sealed(make(), "net")
    read(make())
    short = shortened(json.loads(files[name]))
    count = refused = 0
    for changed in list(changes(short))[::share]:
        content = write_sealed({**files, name: json.dumps(changed).encode()})
        count += 1
        try:
            read(content)
        except RelayError as failed:
            assert [d.code for d in failed.diagnostics] == ["R0641"], changed
            assert not any(word in str(failed) for word in PYTHONS), failed
            refused += 1
    assert count > 500 // share and refused > 0.5 * count


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_json_object(kind: str) -> None:
    make, name, read = KINDS[kind]
    files = read_sealed(make(), "net")
    for text in (b"", b"{", b"null", b"[]", b"3", b'"x"', b"[" * 100_000, b"\xff\xfe", b"1e999", b"9" * 5000, b'{"format": 3}'):
        with pytest.raises(RelayError) as failed:
            read(write_sealed({**files, name: text}))
        assert [d.code for d in failed.value.diagnostics] == ["R0641"]


def test_the_reason_names_the_place() -> None:
    files = read_sealed(vm(), "net")
    manifest = json.loads(files["manifest.json"])

    def said(**fields: Any) -> str:
        with pytest.raises(RelayError) as failed:
            loads(write_sealed({**files, "manifest.json": json.dumps({**manifest, **fields}).encode()}))
        return str(failed.value)

    assert "field `features[0]` must be a text, not 1" in said(features=[1, "x"])
    assert "field `entries.main` must be a whole number from 0 to" in said(entries={"main": -1})
    assert "field `functions[0]` must be an object, not []" in said(functions=[[]])
    assert 'unknown field, "other"' in said(other=1)
    del manifest["packed"]
    assert "no field `packed`" in said()


def test_the_parts_of_a_schema() -> None:
    parse_ = schema.record({"a": schema.maybe(schema.row(schema.text, schema.flag))}, {"b": schema.table(schema.one_of("x", "y"))})
    assert parse_("", {"a": ["t", True], "b": {"n": "x"}}) == {"a": ("t", True), "b": {"n": "x"}}
    assert parse_("", {"a": None}) == {"a": None}
    for wrong, reason in (
        ({"a": ["t", 1]}, "`a[1]` must be true or false, not 1"),
        ({"a": ["t"]}, "`a` must be a list of 2"),
        ({"a": None, "b": {"n": []}}, "`b.n` must be one of x, y, not []"),
        ({"b": {}}, "no field `a`"),
        ([], "its manifest must be an object, not []"),
        ({"a": None, "c": 1}, 'unknown field, "c"'),
    ):
        with pytest.raises(ValueError) as failed:
            parse_("", wrong)
        assert reason in str(failed.value)
