"""The parts of recovery alone: the automaton, the words for tokens, small repairs; and ropes."""

from __future__ import annotations

from relaylang.syntax.attribute_strings import not_a_choice
from relaylang.syntax.reader import tables
from relaylang.syntax.recovery.automaton import END, Automaton, Trial
from relaylang.syntax.recovery.expected import in_words
from relaylang.syntax.recovery.recover import Recovery
from relaylang.syntax.recovery.repairs import candidates, missing
from relaylang.syntax.rope import Lines, Moved, flatten
from relaylang.syntax.tokens import TokenSource


def recovery(text: str) -> Recovery:
    source = TokenSource("<test>", text, tables())
    return Recovery(tables(), source.tokens(), source)


def test_a_token_that_cannot_follow_changes_nothing() -> None:
    machine = Automaton(tables().data)
    assert machine.feed("LPAR") and machine.feed("NUMBER")
    before = list(machine.stack)
    assert not machine.feed("LET") and machine.stack == before
    assert machine.can("COMMA", "NUMBER", "RPAR", END) and machine.stack == before
    assert machine.feed("RPAR") and machine.can(END)


def test_a_token_can_be_taken_back() -> None:
    machine = Automaton(tables().data)
    before = list(machine.stack)
    machine.feed("LPAR")
    machine.drop()
    assert machine.stack == before


def test_a_trial_leaves_its_automaton_alone() -> None:
    machine = Automaton(tables().data)
    machine.feed("LPAR")
    trial = Trial(machine)
    assert trial.feed("NUMBER") and trial.feed("RPAR")
    assert not machine.can("RPAR", "NUMBER") and machine.can("NUMBER")
    assert Trial(machine, 1).feed("NUMBER")


def test_many_terminals_are_one_word() -> None:
    machine = Automaton(tables().data)
    machine.feed("LPAR")
    words = in_words(machine.possible())
    assert "an expression" in words and "`)`" in words
    assert not any("NUMBER" in word or "LOCAL" in word for word in words)


def test_a_missing_sign_is_put_behind_the_last_token() -> None:
    here = recovery("(1 2)")
    here.machine.feed("LPAR")
    here.shifted(0, 1)
    here.machine.feed("NUMBER")
    here.shifted(1, 2)
    said = missing(here, 2, ",")
    assert said.fix is not None and said.fix.apply("(1 2)") == "(1, 2)"
    assert said.title in {diagnostic.title for diagnostic, _, _ in candidates(here, 2, "NUMBER")}


def test_recovery_goes_on_behind_an_error() -> None:
    text = "def @f() { add(1, =); 2 }\ndef @g() { 1 + }"
    found = recovery(text).run()
    assert [d.span.line for d in found if d.span is not None] == [1, 2]


def test_a_rope_is_indented_where_it_is_put() -> None:
    inner = ["a\n", ["b"]]
    assert "".join(flatten(["x\n", Moved(inner, 1), Moved(["\n", Moved("\nc", 1)], 1)])) == "x\na\n  b\n  \n    c"


def test_the_lines_of_a_rope_are_joined_in_blocks() -> None:
    lines = Lines()
    for i in range(20_000):
        lines.add(f"{i}\n")
        if i == 9_000:
            lines.append(["nested\n"])
    assert len(lines) < 4_100
    expected = [*range(9_001), "nested", *range(9_001, 20_000)]
    assert "".join(flatten(lines)) == "".join(f"{line}\n" for line in expected)


def test_a_string_that_is_one_of_a_few_words() -> None:
    wrong = not_a_choice("nn.upsampling", "layout", "NHCW")
    assert wrong is not None and wrong[0] == 'must be "NCHW" or "NHWC"'
    assert not_a_choice("nn.upsampling", "layout", "NHWC") is None
    assert not_a_choice("cast", "dtype", "f32") == ("must be an element type", "float32")
    assert not_a_choice("cast", "dtype", 3) is None


def test_a_token_that_is_taken_back_is_gone() -> None:
    text = "def @main(%x: Ten=sor[(2, 3), float32]) {\n  return nn.re=u(%x)\n}\n"
    assert [d.code for d in recovery(text).run()] == ["R0101", "R0101", "R0114"]
