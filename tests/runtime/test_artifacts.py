"""The protocol of compiled programs: each kind says its inputs, what it needs, and what it can do."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.added import Added
from relaylang.backends.aot import compile_aot
from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.vm import compile_vm
from relaylang.ir import type_text
from relaylang.runtime.artifact import Artifact

TEXT = "def @main(%x: Tensor[(2), float32], %p: (Tensor[(2), float32], (Tensor[(3), int8],))) { (%x + %p.0, %p.1.0) }"
PAIR = "(Tensor[(2), float32], (Tensor[(3), int8],))"
KINDS = {
    "graph": (compile_module, {"run", "threads", "measure", "pack"}),
    "profile": (lambda mod: compile_module(mod, "c -profile"), {"run", "threads", "measure", "pack", "steps"}),
    "vm": (compile_vm, {"run", "threads"}),
    "aot": (compile_aot, {"run", "source"}),
    "bare-metal": (compile_bare_metal, {"run", "source"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_speaks_the_protocol(kind: str) -> None:
    compiled, capabilities = KINDS[kind]
    artifact = compiled(relay.parse(TEXT))
    assert isinstance(artifact, Artifact) and artifact.capabilities == capabilities
    assert artifact.input_names == ["x", "p"]
    signature = artifact.signature()
    assert [type_text(var.checked_type or var.type_annotation) for var in signature] == ["Tensor[(2), float32]", PAIR]
    assert bool(artifact.report()) == (kind != "vm")


def test_a_program_of_the_vm_without_main_runs_its_first_function() -> None:
    program = compile_vm(relay.parse("def @twice(%x: float32) -> float32 { %x + %x }"), entries=["twice"])
    assert program.input_names == ["x"]
    assert program.run(x=np.float32(3)) == 6


class _Plugin:
    input_names = ["x"]
    params = {"w": 1}

    def run(self, **inputs: object) -> object:
        return inputs["x"]

    def save(self, path: str) -> None: ...


class _Reporting(_Plugin):
    capabilities = ["threads"]

    def report(self) -> str:
        return "two cores"


def test_an_artifact_of_a_package_may_say_little() -> None:
    plain, reporting = Added("toy", _Plugin()), Added("toy", _Reporting())
    assert (plain.input_names, plain.report(), plain.capabilities) == (["x"], "", {"run"})
    assert [(var.name_hint, var.type_annotation) for var in plain.signature()] == [("x", None)]
    assert (reporting.report(), reporting.capabilities) == ("two cores", {"run", "threads"})
    assert plain.params == {"w": 1} and not hasattr(plain, "graph")
