"""The session's commands: `:type`, `:anf`, `:load` and the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaylang.diagnostics import RelayError, define_codes, did_you_mean, error
from relaylang.ir import type_text
from relaylang.ops import OPS

if TYPE_CHECKING:
    from relaylang.repl.session import Session

define_codes({"R0720": "unknown command", "R0721": "wrong argument of a command"})


class Quit(Exception):
    """The session is over."""


@dataclass(frozen=True)
class Command:
    """`run(session, argument)` returns what is shown; `argument` is what it takes, for the help."""

    run: Callable[[Session, str], str]
    argument: str
    help: str


def _type(session: Session, argument: str) -> str:
    _need(argument, ":type EXPRESSION")
    ty = session.type_of(argument)
    return "_" if ty is None else type_text(ty)


def _anf(session: Session, argument: str) -> str:
    return session.text_of(argument, anf=True)


def _print(session: Session, argument: str) -> str:
    return session.text_of(argument)


def _load(session: Session, argument: str) -> str:
    _need(argument, ":load FILE")
    return session.load(argument)


def _names(session: Session, argument: str) -> str:
    lines = [f"{what}" for what in session.type_names()]
    lines += [f"@{name} : {says}" for name, says in session.global_names().items()]
    lines += [f"%{name} : {type_text(ty) if ty else '?'}" for name, ty in session.variables().items()]
    return "\n".join(lines) or "nothing is defined yet"


def _doc(session: Session, argument: str) -> str:
    _need(argument, ":doc OPERATOR")
    op = OPS.get(argument)
    if op is None:
        near = did_you_mean(argument, OPS)
        notes = [f"did you mean {near}?"] if near else ["Tab completes names"]
        raise RelayError(error("R0721", f"no operator {argument}", notes=notes))
    lines = [op.signature()]
    if op.doc:
        lines.append(f"  {op.doc}")
    for field in op.schema.values():
        default = "must be given" if field.required else f"default {field.default!r}"
        lines.append(f"  {field.name}: {field.kind}{' or None' if field.optional else ''}, {default}")
    return "\n".join(lines)


def _reset(session: Session, argument: str) -> str:
    session.reset()
    return "all definitions are gone"


def _help(session: Session, argument: str) -> str:
    width = max(len(f"{name} {c.argument}") for name, c in COMMANDS.items())
    lines = [
        "An expression is evaluated and shown with its type. What is defined stays:",
        "  def @f(%x: int32) { %x + 1 }     a function",
        "  let %a = @f(41)                  a variable; %0 = @f(41) is the same",
        "  type T { A(int32), B, }          a type",
        "",
        *(f"  {f'{name} {c.argument}':<{width}}  {c.help}" for name, c in COMMANDS.items()),
        "",
        "Enter ends a complete expression; Alt-Enter begins a new line anywhere. Tab completes.",
        "Ctrl-C stops an evaluation or drops the line, Ctrl-D leaves.",
    ]
    return "\n".join(lines)


def _quit(session: Session, argument: str) -> str:
    raise Quit


def _need(argument: str, usage: str) -> None:
    if not argument.strip():
        raise RelayError(error("R0721", f"an argument is missing: {usage}"))


COMMANDS: dict[str, Command] = {
    ":type": Command(_type, "EXPR", "the type of an expression, without evaluating it"),
    ":anf": Command(_anf, "[EXPR|@NAME]", "A-normal form of an expression, a function, or the whole session"),
    ":print": Command(_print, "[EXPR|@NAME]", "the text of an expression, a function, or the whole session"),
    ":load": Command(_load, "FILE", "read a file's definitions into the session"),
    ":names": Command(_names, "", "what is defined, with types"),
    ":doc": Command(_doc, "OPERATOR", "an operator's arguments and attributes"),
    ":reset": Command(_reset, "", "forget every definition"),
    ":help": Command(_help, "", "this text"),
    ":quit": Command(_quit, "", "leave"),
}


def run_command(session: Session, line: str) -> str:
    """Run `:name argument`; a name may be cut short as long as it is unique. Raises `RelayError` and `Quit`."""
    name, _, argument = line.strip().partition(" ")
    name, newline, more = name.partition("\n")
    argument = (more + newline + argument if newline else argument).strip()
    fits = [known for known in COMMANDS if known.startswith(name)]
    if name not in COMMANDS and len(fits) != 1:
        near = did_you_mean(name, COMMANDS)
        note = f"did you mean {near}?" if near else ":help lists the commands"
        title = f"{name} could be {' or '.join(fits)}" if fits and name != ":" else f"unknown command {name}"
        raise RelayError(error("R0720", title, notes=[note]))
    return COMMANDS[name if name in COMMANDS else fits[0]].run(session, argument)
