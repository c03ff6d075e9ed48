"""Each verb visits shared nodes once: programs of few lines have two to the power of their number of paths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import relaylang as relay
from relaylang import analysis
from relaylang.interpreter import evaluate, value_text
from relaylang.ir import structural_diff, structural_hash
from relaylang.lsp.analysis import Analysis
from relaylang.lsp.features import hints, hover, outline
from relaylang.op.contrib import partition_for_dnnl
from relaylang.syntax import astext
from relaylang.syntax.format import format_text
from relaylang.transform import (
    InferType,
    PlanDevices,
    ToANormalForm,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
)
from relaylang.viz import as_dot, as_html, as_text, graph_of
from tests.growth import SHARED, within

#: Lines of a program, and the most functions that a linear verb enters for them.
LINES, MOST = 22, 250_000
#: Shapes of programs in which each line calls the line before it twice.
CALLED = ("functions", "let-bound functions")


def checked(text: str) -> relay.IRModule:
    return InferType()(relay.parse(text))


def run(text: str) -> str:
    mod = checked(text)
    given = {"x": np.ones(2, "float32"), "c": np.array(True)}
    names = [p.name_hint for p in mod["main"].params]
    return value_text(evaluate(mod, **{n: given[n] for n in names}))


def edited(text: str) -> str:
    """What an editor asks for at every name: types, hints, the outline."""
    found = Analysis(text, "net.relay")
    shown = [str(hover(found, at)) for at in range(0, len(text), 7)]
    return "".join([str(found.diagnostics), *shown, *(hint for _, hint in hints(found, 0, len(text))), str(len(outline(found)))])


VERBS: dict[str, Callable[[str], str]] = {
    "check": lambda text: str(len(checked(text).functions)),
    "print": lambda text: astext(checked(text)),
    "print --style tvm --no-types": lambda text: astext(checked(text), style="tvm", show_types=False),
    "print --spans": lambda text: astext(checked(text), show_spans=True),
    "print --anf": lambda text: astext(ToANormalForm()(checked(text))),
    "print --gnf": lambda text: astext(ToGraphNormalForm()(checked(text))),
    "print --bbnf": lambda text: astext(ToBasicBlockNormalForm()(checked(text))),
    "fmt": format_text,
    "viz": lambda text: as_text(graph_of(checked(text))),
    "viz --as dot": lambda text: as_dot(graph_of(checked(text))),
    "viz --as html": lambda text: as_html(graph_of(checked(text)))[-200_000:],
    "diff": lambda text: str((structural_diff(checked(text), relay.parse(text)), structural_hash(relay.parse(text)))),
    "lsp": edited,
    "run": run,
    "partition": lambda text: astext(partition_for_dnnl(checked(text))),
    "plan devices": lambda text: astext(PlanDevices()(checked(text)), show_types=False),
    "analyses": lambda text: str(
        (
            analysis.all_dtypes(checked(text)),
            analysis.all_type_vars(checked(text)),
            analysis.detect_feature(checked(text)),
            analysis.list_op_freqs(checked(text)),
            analysis.well_formed(checked(text)["main"]),
        )
    ),
}


#: Those that are quick, and have types, functions and values that are shared.
FEW = ("tuples", "functions")


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("shape", [s if s in FEW else pytest.param(s, marks=pytest.mark.sweep) for s in SHARED])
def test_a_verb_looks_at_what_is_shared_once(verb: str, shape: str) -> None:
    if verb == "run" and shape in (*CALLED, "matches"):
        return  # a line calls the line before it twice: two to the power of their number; a T is no input
    VERBS[verb](SHARED[shape](3))
    text = within(MOST, lambda: VERBS[verb](SHARED[shape](LINES)))
    assert isinstance(text, str) and len(text) < 250_000


#: Lines of a long program, and how many functions are entered for each.
LONG, EACH = 100_000, 1_000


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("verb", [v for v in VERBS if v != "lsp"])  # which is asked at every place; see benchmarks/lsp.py
@pytest.mark.parametrize("shape", ["calls"])
def test_long_programs_of_shared_values(verb: str, shape: str) -> None:
    assert within(EACH * LONG, lambda: VERBS[verb](SHARED[shape](LONG)))
