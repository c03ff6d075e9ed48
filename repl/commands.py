"""The session's commands: `:type`, `:anf`, `:load` and the rest. What they do stands in `tools`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.diagnostics.pages import PAGES, page_text
from relaylang.diagnostics.rendering import prose_width
from relaylang.ir import IRModule, type_text
from relaylang.ops.extensions import find, names
from relaylang.repl.opdoc import doc_text
from relaylang.repl.pictures import statistics
from relaylang.repl.show import spelled
from relaylang.repl.tools import (
    KEYS,
    compile_function,
    draw,
    plot,
    profile,
    reload_files,
    run_passes,
    save,
    set_target,
    time_expression,
    viz,
)
from relaylang.syntax import astext

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


def answer(session: Session, name: str) -> str:
    """What `?name` shows: of an operator its page, of other names their type or definition. Raises `RelayError`."""
    sign, bare = name[:1], name[1:].strip('"')
    if not name:
        return _help(session, "")
    if sign == ":":
        fits = _fitting(name)
        return "\n".join(f"{n} {COMMANDS[n].argument}\n  {COMMANDS[n].help}" for n in fits) or run_command(session, name)
    if sign == "@" and bare in session.module:
        return session.text_of(f"@{bare}")
    if sign == "%" and bare in session.variables():
        data, says = session.values()[bare], _type(session, spelled("%", bare))
        return f"{spelled('%', bare)} : {says}" + (f"\n{statistics(data.astype(np.float64))}" if isinstance(data, np.ndarray) else "")
    if re.fullmatch(r"R\d{4}", name):
        return _explain(session, name)
    for var, data in session.definitions().items():
        if name in (var.name_hint, *(c.name_hint for c in data.constructors)):
            return astext(IRModule({}, {var: data}), header=False).strip()
    return _doc(session, name)


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
    room = session.style.width - 1
    rows = [(f"{name} {c.argument}".rstrip(), c.help) for name, c in COMMANDS.items()]
    begin = max(len(head) for head, _ in rows) + 4
    if room - begin < _NARROWEST:  # the effect stands below the command
        begin = 6
        rows = [(f"{head}\n", says) for head, says in rows]
    lines = [
        "An expression is evaluated and shown with its type. What is defined stays:",
        "  def @f(%x: int32) { %x + 1 }     a function",
        "  let %a = @f(41)                  a variable; %0 = @f(41) is the same",
        "  type T { A(int32), B, }          a type",
        "",
        *("  " + _beside(head, says, begin, room) for head, says in rows),
        "",
        "_ is the last value. ?NAME or NAME? explains a name.",
        "Enter ends a complete expression; Alt-Enter begins a new line anywhere. Tab completes.",
        "Ctrl-R searches the history. Ctrl-C stops an evaluation or drops the line, Ctrl-D leaves.",
    ]
    return "\n".join(textwrap.fill(line, room) if line[:1].isalpha() or line[:1] == "_" else line for line in lines)


#: Fewer columns than these are no column of text.
_NARROWEST = 40


def _beside(head: str, says: str, begin: int, room: int) -> str:
    """A head and the text beside it, whose lines begin at the column `begin`."""
    text = textwrap.fill(says, room, initial_indent=" " * begin, subsequent_indent=" " * begin)
    return head + text[0 if head.endswith("\n") else len(head) + 2 :]


def _quit(session: Session, argument: str) -> str:
    raise Quit


_WHAT = "[EXPR|@NAME]"
COMMANDS: dict[str, Command] = {
    ":type": Command(_type, "EXPR", "the type of an expression, without evaluating it", needed=True),
    ":anf": Command(lambda s, a: s.text_of(a, anf=True), _WHAT, "A-normal form of an expression, a function, or everything"),
    ":print": Command(lambda s, a: s.text_of(a), _WHAT, "the text of an expression, a function, or everything"),
    ":passes": Command(run_passes, f"LIST {_WHAT}", "run passes and show the result; without a list: what there is", "passes"),
    ":viz": Command(viz, _WHAT, "the graph of an expression, a function, or everything: a page in the browser, if there is one"),
    ":draw": Command(draw, _WHAT, "the same graph in the terminal"),
    ":plot": Command(plot, "EXPR", "a picture of a tensor: bars or a heat map", needed=True),
    ":time": Command(time_expression, "EXPR", "how long evaluating it takes", needed=True),
    ":profile": Command(profile, "EXPR", "where the time goes, by operator", needed=True),
    ":target": Command(set_target, "[TARGET]", "what runs expressions: interpreter, or a target such as c", "target"),
    ":compile": Command(compile_function, "@NAME [FILE]", "compile a function for the target, into a file if one is named"),
    ":load": Command(lambda s, a: s.load(a), "FILE", "read a file's definitions, or the tensors of a .npz file", "file", needed=True),
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
