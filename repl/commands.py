"""The session's commands: `:type`, `:anf`, `:load` and the rest. What they do stands in `tools`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.diagnostics.pages import PAGES, page_text
from relaylang.diagnostics.rendering import prose_width
from relaylang.ir import type_text
from relaylang.ops.extensions import find, names
from relaylang.repl.opdoc import doc_text
from relaylang.repl.show import spelled
from relaylang.repl.tools import (
    KEYS,
    compile_function,
    profile,
    reload_files,
    run_passes,
    save,
    set_target,
    time_expression,
    viz,
)

if TYPE_CHECKING:
    from relaylang.repl.session import Session

class Quit(Exception):
    """The session is over."""


@dataclass(frozen=True)
class Command:
    """`run(session, argument)` returns the output. `argument` describes the argument in the help, `takes` its completions."""

    run: Callable[[Session, str], str]
    argument: str
    help: str
    takes: str = "expression"
    needed: bool = False


def _type(session: Session, argument: str) -> str:
    ty = session.type_of(argument)
    return "_" if ty is None else type_text(ty)


def _names(session: Session, argument: str) -> str:
    lines = [f"{what}" for what in session.type_names()]
    lines += [f"{spelled('@', name)} : {says}" for name, says in session.global_names().items()]
    lines += [f"{spelled('%', name)} : {type_text(ty) if ty else '?'}" for name, ty in session.variables().items()]
    return "\n".join(lines) or "nothing is defined yet"


def _doc(session: Session, argument: str) -> str:
    op = find(argument)
    if op is not None:
        return doc_text(op, prose_width())
    near = did_you_mean(argument, names())
    notes = [f"did you mean {near}?"] if near else ["Tab completes names"]
    raise RelayError(error("R0721", f"no operator {argument}", notes=notes))


def _explain(session: Session, argument: str) -> str:
    if not argument:
        if session.last_error is None:
            raise RelayError(error("R0721", "there was no error yet", notes=[":explain R0301 explains a code"]))
        argument = session.last_error
    digits = argument.upper().removeprefix("R")
    code = f"R{digits.zfill(4)}" if digits.isdigit() else argument
    page = PAGES.get(code)
    if page is not None:
        return page_text(page, prose_width()).rstrip("\n")
    near = did_you_mean(code, PAGES)
    raise RelayError(error("R0721", f"there is no code {argument}", notes=[f"did you mean {near}?"] if near else []))


def _reset(session: Session, argument: str) -> str:
    session.reset()
    return "all definitions are gone; :undo brings them back"


def _undo(session: Session, argument: str) -> str:
    return session.undo()


def _keys(session: Session, argument: str) -> str:
    if argument and argument not in KEYS:
        raise RelayError(error("R0721", f"keys are {' or '.join(KEYS)}, not {argument}"))
    session.keys = argument or session.keys
    return f"{session.keys} keys"


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
        "Ctrl-R searches the history. Ctrl-C stops an evaluation or drops the line, Ctrl-D leaves.",
    ]
    return "\n".join(lines)


def _quit(session: Session, argument: str) -> str:
    raise Quit


_WHAT = "[EXPR|@NAME]"
COMMANDS: dict[str, Command] = {
    ":type": Command(_type, "EXPR", "the type of an expression, without evaluating it", needed=True),
    ":anf": Command(lambda s, a: s.text_of(a, anf=True), _WHAT, "A-normal form of an expression, a function, or everything"),
    ":print": Command(lambda s, a: s.text_of(a), _WHAT, "the text of an expression, a function, or everything"),
    ":passes": Command(run_passes, f"LIST {_WHAT}", "run passes and show the result; without a list: what there is", "passes"),
    ":viz": Command(viz, _WHAT, "the graph of an expression, a function, or everything"),
    ":time": Command(time_expression, "EXPR", "how long evaluating it takes", needed=True),
    ":profile": Command(profile, "EXPR", "where the time goes, by operator", needed=True),
    ":target": Command(set_target, "[TARGET]", "what runs expressions: interpreter, or a target such as c", "target"),
    ":compile": Command(compile_function, "@NAME [FILE]", "compile a function for the target, into a file if one is named"),
    ":load": Command(lambda s, a: s.load(a), "FILE", "read a file's definitions into the session", "file", needed=True),
    ":reload": Command(reload_files, "", "read the loaded files again", "nothing"),
    ":save": Command(save, "FILE", "write definitions and variables to a file", "file", needed=True),
    ":save!": Command(lambda s, a: save(s, a, replace=True), "FILE", "the same, over a file that is there", "file", needed=True),
    ":names": Command(_names, "", "what is defined, with types", "nothing"),
    ":doc": Command(_doc, "OPERATOR", "an operator's arguments, attributes, type rule and an example", "operator", needed=True),
    ":explain": Command(_explain, "[CODE]", "what an error's code means; without one, the last error's", "code"),
    ":undo": Command(_undo, "", "take the last definition back", "nothing"),
    ":reset": Command(_reset, "", "forget every definition", "nothing"),
    ":keys": Command(_keys, "[vi|emacs]", "the keys of the editor", "keys"),
    ":help": Command(_help, "", "this text", "nothing"),
    ":quit": Command(_quit, "", "leave", "nothing"),
}


def _fitting(name: str) -> list[str]:
    """The commands that a name may be short for."""
    return [name] if name in COMMANDS else [known for known in COMMANDS if known.startswith(name) and not known.endswith("!")]


def is_command(line: str) -> bool:
    """Whether a line begins with the name of a command, or with a beginning that one command alone has."""
    word = line.split(maxsplit=1)[:1]
    return bool(word) and len(word[0]) > 1 and word[0][0] == ":" and len(_fitting(word[0])) == 1


def run_command(session: Session, line: str) -> str:
    """Run `:name argument`; a name may be cut short as long as it is unique. Raises `RelayError` and `Quit`."""
    name, _, argument = line.strip().partition(" ")
    name, newline, more = name.partition("\n")
    argument = (more + newline + argument if newline else argument).strip()
    fits = _fitting(name)
    if len(fits) != 1:
        near = did_you_mean(name, COMMANDS)
        note = f"did you mean {near}?" if near else ":help lists the commands"
        title = f"{name} could be {' or '.join(fits)}" if fits and name != ":" else f"unknown command {name}"
        raise RelayError(error("R0720", title, notes=[note]))
    name = fits[0]
    command = COMMANDS[name]
    if command.needed and not argument:
        raise RelayError(error("R0721", f"an argument is missing: {name} {command.argument}"))
    if command.takes == "nothing" and argument:
        raise RelayError(error("R0721", f"{name} takes no argument"))
    return command.run(session, argument)
