"""Programs give what PaddlePaddle computes for them; scripts/paddle_results.py records it."""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.formats import format_of
from relaylang.frontends.options import Options
from relaylang.frontends.paddle import import_paddle
from relaylang.frontends.paddle.descriptions import read_description
from relaylang.frontends.paddle.pir import read_pir
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.frontends.paddle.files import pdiparams, weight

DATA = Path(__file__).parent / "data"
FORMS = {"2": ".pdmodel", "3": ".json"}


@cache
def recorded(form: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"recorded{form}.npz") as found:
        return dict(found)


@cache
def programs(form: str) -> dict[str, bytes]:
    with zipfile.ZipFile(DATA / f"programs{form}.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def names(form: str, networks: bool) -> list[str]:
    found = [name.removesuffix(FORMS[form]) for name in programs(form) if name.endswith(FORMS[form])]
    return [name for name in found if name.startswith("op_") is not networks]


def files(form: str, name: str) -> tuple[bytes, bytes]:
    """A program and its weights, which are made from their names where the file is large."""
    data = programs(form)[name + FORMS[form]]
    kept = programs(form).get(name + ".pdiparams")
    if kept is not None:
        return data, kept
    read = read_pir if form == "3" else read_description
    weights = read(data, name).weights
    return data, pdiparams({w.name: weight(w.name, w.shape or (), w.dtype) for w in weights})


def values(form: str, name: str, side: str) -> list[np.ndarray]:
    found = recorded(form)
    return [found[f"{name}_{side}{i}"] for i in range(100) if f"{name}_{side}{i}" in found]


def results(mod: relay.IRModule, *given: np.ndarray) -> list[np.ndarray]:
    found = Evaluator(mod).call("main", given)
    return [np.asarray(v) for v in found] if isinstance(found, tuple) else [np.asarray(found)]


def same(found: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-5) -> None:
    assert found.shape == wanted.shape or (found.size == wanted.size == 1)
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
        return
    finite = wanted[np.isfinite(wanted)]
    bound = tolerance * max(np.abs(finite).max(initial=0), 1e-30)
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=0, atol=bound)


def compared(form: str, name: str) -> relay.IRModule:
    data, weights = files(form, name)
    assert format_of(data).name == "paddle"  # type: ignore[union-attr]
    mod = import_paddle(data, Options(), name + FORMS[form], weights).module
    found, wanted = results(mod, *values(form, name, "in")), values(form, name, "out")
    assert len(found) == len(wanted)
    for own, other in zip(found, wanted):
        same(own, other)
    return mod


SLOW = {"densenet121", "resnet18"}
NETWORKS = [
    pytest.param(form, name, marks=pytest.mark.sweep) if name in SLOW else (form, name) for form in FORMS for name in names(form, True)
]


@pytest.mark.parametrize(("form", "name"), NETWORKS)
def test_a_network_gives_what_paddlepaddle_gives(form: str, name: str) -> None:
    mod = compared(form, name)
    assert relay.infer(mod, fresh=True) == []
    assert structural_equal(relay.parse(mod.astext()), mod)


@pytest.mark.parametrize(("form", "name"), [(form, name) for form in FORMS for name in names(form, False)])
def test_an_operation_gives_what_paddlepaddle_gives(form: str, name: str) -> None:
    compared(form, name)
