"""Modules and expressions as text."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay


def test_text_of_modules_and_expressions() -> None:
    module = relay.parse('#[version = "0.0.5"]\ndef @main(%data: int32) {\n  %data\n}\n')
    assert module.astext() == relay.astext(module) == str(module)
    assert module["main"].astext() == relay.astext(module["main"])
    big = relay.const(np.ones((2, 3), np.float32))
    assert "#[metadata]" in big.astext() and "#[metadata]" not in big.astext(show_meta_data=False)


def test_functions_and_types_by_name() -> None:
    x = relay.var("x", shape=(2,))
    tree = relay.GlobalTypeVar("Tree")
    data = relay.TypeData(tree, [], [relay.Constructor("Leaf", [], tree)])
    mod = relay.IRModule({"main": relay.Function([x], x)}, {"Tree": data})
    assert mod["main"].params[0] is x and mod.get_global_type_var("Tree").name_hint == "Tree"
    mod["Other"] = relay.TypeData(relay.GlobalTypeVar("Other"), [], [])
    assert [g.name_hint for g in mod.get_global_type_vars()] == ["Tree", "Other"]


def test_an_expression_becomes_a_function_of_its_free_variables() -> None:
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    mod = relay.IRModule({"one": relay.const(1.0)})
    mod["main"] = relay.Function([y], relay.Function([x], x + y))(relay.const(1.0))(relay.const(2.0))
    mod["open"] = x + y
    assert isinstance(mod["one"], relay.Function) and mod["open"].params == (x, y)
    assert all(relay.create_executor(kind, mod=mod).evaluate()() == 3 for kind in ("debug", "vm"))


def test_tags_of_constructors_are_tvms() -> None:
    one, two = relay.Prelude(), relay.Prelude()
    _, cons, nil = one.mod.get_type("List")
    assert (cons.tag, nil.tag) == (-2013265920, -2013265919)  # as TVM 0.16 numbers them
    assert one.mod.get_constructor(nil.tag) is nil and two.mod.get_constructor(cons.tag).name_hint == "Cons"
    names = ("Option", "Tree", "nat", "tensor_float32_t", "abcdefgh", "a" * 17)
    recorded = (1107296256, 939524096, 738197504, 637534208, -1157627904, -822083584)
    for name, tag in zip(names, recorded):
        var = relay.GlobalTypeVar(name)
        made = [relay.Constructor(c, [], var) for c in "AB"]
        mod = relay.IRModule({}, {var: relay.TypeData(var, [], made)})
        assert [c.tag for c in made] == [tag, tag + 1] and mod.get_constructor(tag + 1) is made[1]
    with pytest.raises(KeyError, match="no constructor has the tag 7"):
        relay.IRModule().get_constructor(7)


def test_constructors_of_a_type_made_in_python_differ() -> None:
    colour = relay.GlobalTypeVar("Colour")
    red, blue = (relay.Constructor(name, [], colour) for name in ("Red", "Blue"))
    mod = relay.IRModule({}, {colour: relay.TypeData(colour, [], [red, blue])})
    clauses = [relay.Clause(relay.PatternConstructor(c, []), relay.const(n)) for n, c in ((1, red), (2, blue))]
    mod["main"] = relay.Function([], relay.Match(blue(), clauses))
    assert relay.create_executor("debug", mod=mod).evaluate()() == 2


def test_what_is_the_same() -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(x)
    assert x.same_as(x) and not x.same_as(relay.var("x", shape=(2,)))
    assert mod.same_as(mod) and not mod.same_as(relay.IRModule.from_expr(x))
    assert not relay.TensorType((2,)).same_as(relay.TensorType((2,)))
