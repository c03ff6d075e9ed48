"""Write a shell's completion script: verbs, options, their values, and files.

The script is made from the verbs' own parsers, so that it knows what they know.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from relaylang.backends.registry import BACKENDS
from relaylang.diagnostics.pages import PAGES
from relaylang.partition import accelerators
from relaylang.passes import PASSES

EPILOG = """\
examples:
  source <(relay completion bash)               bash or zsh, this shell only
  relay completion fish | source                fish, this shell only
  D=~/.local/share/bash-completion/completions; mkdir -p $D; relay completion bash > $D/relay
  D=~/.zfunc; mkdir -p $D; relay completion zsh > $D/_relay      with fpath=(~/.zfunc $fpath) in front of compinit
  D=~/.config/fish/completions; mkdir -p $D; relay completion fish > $D/relay.fish
"""

_FILE = re.compile(r"FILE|PATH|DIR")


@dataclass(frozen=True)
class Value:
    """The values of an option or argument: words (`several`: with commas between them), files, or any text."""

    words: tuple[str, ...] = ()
    files: bool = False
    several: bool = False


@dataclass(frozen=True)
class Option:
    """An option: its names, its help, and its value (None for a flag)."""

    names: tuple[str, ...]
    help: str
    value: Value | None


@dataclass(frozen=True)
class Verb:
    name: str
    help: str
    options: tuple[Option, ...]
    arguments: Value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(SHELLS), metavar="SHELL", help=f"one of {', '.join(sorted(SHELLS))}")


def run(args: argparse.Namespace) -> int:
    print(SHELLS[args.shell](verbs(args.verbs, args.parser_of)), end="")
    return 0


def verbs(table: Mapping[str, tuple[str, str]], parser_of: Callable[[str], argparse.ArgumentParser]) -> list[Verb]:
    """Every verb of a table (name -> module and help), as its parser has it."""
    return [_verb(name, line, parser_of(name)) for name, (_, line) in table.items()]


def _verb(name: str, line: str, parser: argparse.ArgumentParser) -> Verb:
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    options: list[Option] = []
    words: list[str] = []
    files = False
    for action in commands.choices[name]._actions:
        value = _value(action)
        if action.option_strings:
            text = (action.help or "").replace("%%", "%").partition("\n")[0]
            options.append(Option(tuple(action.option_strings), text, None if action.nargs == 0 else value))
        else:
            words += value.words
            files = files or value.files
    return Verb(name, line, tuple(options), Value(tuple(words), files))


def _value(action: argparse.Action) -> Value:
    """The words or files that an action takes, by its choices, its name, or its metavar."""
    if action.choices is not None:
        return Value(tuple(str(c) for c in action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if action.dest == "target":
        return Value(tuple(BACKENDS))
    if action.dest == "accelerator":
        return Value(tuple(accelerators()))
    if action.dest == "passes" or (action.dest == "disable" and metavar == "NAME"):
        return Value(tuple(PASSES), several=action.dest == "passes")
    if metavar == "CODE":
        return Value(tuple(sorted(PAGES)))
    return Value((), bool(_FILE.search(metavar)))


# -- bash


def bash(table: list[Verb]) -> str:
    cases = []
    for verb in table:
        lines = [f"    {verb.name})", f"      options={_bash_word(' '.join(n for o in verb.options for n in o.names))}"]
        lines.append(f"      words={_bash_word(' '.join(verb.arguments.words))} files={int(verb.arguments.files)}")
        lines.append('      case "$prev" in')
        for option in verb.options:
            if option.value is not None:
                lines.append(
                    f"        {'|'.join(option.names)}) options= words={_bash_word(' '.join(option.value.words))}"
                    f" files={int(option.value.files)} several={int(option.value.several)} ;;"
                )
        cases.append("\n".join([*lines, "      esac ;;"]))
    return (
        "# bash completion for relay, written by `relay completion bash`\n"
        "_relay() {\n"
        "  local cur prev verb= i options='--help --version' words= files=0 several=0\n"
        "  cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        '  if [[ $prev == "=" ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n'
        '  if [[ $cur == "=" ]]; then cur=; fi\n'
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "    if [[ ${COMP_WORDS[i]} != -* ]]; then verb=${COMP_WORDS[i]}; break; fi\n"
        "  done\n"
        '  case "$verb" in\n'
        f"    '') words='{' '.join(v.name for v in table)}' ;;\n" + "\n".join(cases) + "\n"
        "  esac\n"
        "  COMPREPLY=()\n"
        "  if [[ $cur == -* ]]; then\n"
        '    COMPREPLY=($(compgen -W "$options" -- "$cur"))\n'
        "    return\n"
        "  fi\n"
        "  if ((several)) && [[ $cur == *,* ]]; then\n"
        '    COMPREPLY=($(compgen -P "${cur%,*}," -W "$words" -- "${cur##*,}"))\n'
        "    return\n"
        "  fi\n"
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))\n'
        "  if ((files)); then\n"
        "    compopt -o filenames 2>/dev/null\n"
        "    local IFS=$'\\n'\n"
        '    COMPREPLY+=($(compgen -f -- "$cur"))\n'
        "  fi\n"
        "}\n"
        "complete -F _relay relay\n"
    )


def _bash_word(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# -- zsh


def zsh(table: list[Verb]) -> str:
    listed = "\n".join(f"    {_bash_word(f'{v.name}:{v.help}')}" for v in table)
    cases = "\n".join(_zsh_verb(v) for v in table)
    return (
        "#compdef relay\n"
        "# zsh completion for relay, written by `relay completion zsh`\n"
        "_relay() {\n"
        "  local -a verbs\n"
        "  verbs=(\n" + listed + "\n  )\n"
        "  if (( CURRENT == 2 )); then\n"
        "    if [[ $PREFIX == -* ]]; then\n"
        "      _arguments '--help[show what there is]' '--version[show the version]'\n"
        "    else\n"
        "      _describe -t verbs verb verbs\n"
        "    fi\n"
        "    return\n"
        "  fi\n"
        "  local verb=$words[2]\n"
        "  shift words\n"
        "  (( CURRENT-- ))\n"
        "  case $verb in\n" + cases + "\n  esac\n"
        "}\n"
        'if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _relay "$@"; else compdef _relay relay; fi\n'
    )


def _zsh_verb(verb: Verb) -> str:
    specs = []
    for option in verb.options:
        value = "" if option.value is None else f":value:{_zsh_value(option.value)}"
        described = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
        for name in option.names:
            sign = "+" if option.value is not None and not name.startswith("--") else "=" if option.value is not None else ""
            specs.append(_bash_word(f"*{name}{sign}[{described}]{value}"))
    specs.append(_bash_word(f"*:argument:{_zsh_value(verb.arguments)}"))
    return f"    {verb.name})\n      _arguments " + " \\\n        ".join(specs) + " ;;"


def _zsh_value(value: Value) -> str:
    if value.several:
        return f"_sequence compadd - {' '.join(value.words)}"
    if value.words:
        return f"({' '.join(value.words)})"
    return "_files" if value.files else " "


# -- fish


def fish(table: list[Verb]) -> str:
    names = " ".join(v.name for v in table)
    lines = [
        "# fish completion for relay, written by `relay completion fish`",
        "complete -c relay -f",
        f"complete -c relay -n 'not __fish_seen_subcommand_from {names}' -l version -d 'show the version'",
        "complete -c relay -l help -s h -d 'show what there is'",
    ]
    for verb in table:
        lines.append(f"complete -c relay -n 'not __fish_seen_subcommand_from {names}' -a {verb.name} -d {_fish_word(verb.help)}")
    for verb in table:
        lines += _fish_verb(verb)
    return "\n".join(lines) + "\n"


def _fish_verb(verb: Verb) -> Iterator[str]:
    head = f"complete -c relay -n '__fish_seen_subcommand_from {verb.name}'"
    if verb.arguments.files:
        yield f"{head} -F"
    if verb.arguments.words:
        yield f"{head} -a {_fish_word(' '.join(verb.arguments.words))}"
    for option in verb.options:
        if "--help" in option.names:
            continue
        names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
        value = ""
        if option.value is not None:
            value = " -r -F" if option.value.files else " -x"
            if option.value.several:
                value += f" -a {_fish_word('(__fish_append , ' + ' '.join(option.value.words) + ')')}"
            elif option.value.words:
                value += f" -a {_fish_word(' '.join(option.value.words))}"
        yield f"{head} {names}{value} -d {_fish_word(option.help)}"


def _fish_word(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": bash, "fish": fish, "zsh": zsh}
