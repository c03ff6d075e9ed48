"""What holds for every well-typed program, on random ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaylang.ir import Expr, IRModule, structural_diff, structural_equal, structural_hash
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text
from relaylang.testing import strategies as relay
from relaylang.typing import infer

QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def errors(node: IRModule | Expr, **options: object) -> list[str]:
    return [str(d) for d in infer(node, **options) if d.severity == "error"]  # type: ignore[arg-type]


@pytest.mark.sweep
@QUICK
@given(relay.modules())
def test_they_are_well_typed_and_read_back(mod: IRModule) -> None:
    plain = astext(mod)
    assert errors(mod) == []
    typed = astext(mod)
    for text in (plain, typed):
        again = parse(text).value
        assert structural_diff(mod, again) is None
        assert structural_hash(mod) == structural_hash(again)
        assert astext(again) == plain
    assert errors(again) == []
    for name, function in mod.functions.items():
        assert structural_equal(again[name.name_hint].checked_type, function.checked_type)
    assert astext(again) == typed


@pytest.mark.sweep
@QUICK
@given(relay.modules())
def test_the_formatter_leaves_the_print_alone(mod: IRModule) -> None:
    text = astext(mod)
    assert format_text(text).rstrip("\n") == text.rstrip("\n")


@pytest.mark.sweep
@QUICK
@given(relay.modules(depth=3))
def test_normal_form_keeps_the_types(mod: IRModule) -> None:
    assert errors(mod) == []
    normal = to_anf(mod)
    assert errors(normal) == []
    for name, function in mod.functions.items():
        assert structural_equal(normal[name.name_hint].checked_type, function.checked_type)


@pytest.mark.sweep
@QUICK
@given(st.data())
def test_an_expression_has_the_type_that_was_asked_for(data: st.DataObject) -> None:
    ty = data.draw(relay.types())
    expr = data.draw(relay.expressions(ty))
    mod = IRModule({}, {relay.LIST.header: relay.LIST})
    assert errors(expr, module=mod) == []
    assert expr.checked_type == ty


def test_the_registry_takes_part() -> None:
    names = {op.name for found in relay.calls().values() for op, _ in found}
    assert len(names) > 80 and {"add", "nn.relu", "less", "logical_and", "nn.softmax"} <= names
