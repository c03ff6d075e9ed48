"""The standard definitions, in Relay text: those of the folder `std`, and tensor arrays made for an element type.

The first use of a definition reads its file, once in a process. `add` puts one definition and its dependencies into a
module. So a program carries only the definitions that it uses. Modules share the definitions: the `List` of two
modules is one type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from relaylang.diagnostics import Fix, RelayError, did_you_mean, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import GlobalTypeVar, GlobalVar, IRModule
from relaylang.stdlib.tensor_array import DTYPES, dynamic_text
from relaylang.syntax import ParseResult, parse
from relaylang.typing import check
from relaylang.typing.uses import definition_uses, uses

#: TVM's names of the files that a program may import, and ours.
FILES = {"prelude.rly": "prelude", "nat.rly": "nat", "gradient.rly": "gradient", "core.rly": "core"}
_TENSOR_ARRAY = re.compile(rf"(?:tensor|ta_split)\w*_({'|'.join(DTYPES)})(?:_t)?")
IMPORT = re.compile(r'^[ \t]*import[ \t]+"([^"\n]*)"[ \t]*;?[ \t]*$', re.M)


@cache
def library(name: str) -> IRModule:
    """The checked definitions of a file and of its imports.

    The name is "prelude" or "nat", or an element type for its tensor arrays.
    """
    base: IRModule | None
    if name in DTYPES:
        text, base = dynamic_text(name), library("prelude")
    else:
        text = (resources.files("relaylang") / "stdlib" / f"{name}.relay").read_text(encoding="utf-8")
        base = None if name in ("prelude", "core") else library("prelude")
    module = parse(text, f"<std/{name}>", base).module
    assert module is not None
    check(module)
    return module


def _type_of_tag(tag: int) -> str | None:
    """The type of the standard files that has a constructor of this tag."""
    for known in ("prelude", "nat", "gradient"):
        for ty, data in library(known).type_definitions.items():
            if any(c.tag == tag for c in data.constructors):
                return ty.name_hint
    return None


def find(name: str) -> IRModule | None:
    """The library that defines a name."""
    for known in ("prelude", "nat", "gradient", "core"):
        mod = library(known)
        if name in mod or name in mod._types:
            return mod
    match = _TENSOR_ARRAY.fullmatch(name)
    if match is None:
        return None
    mod = library(match[1])
    return mod if name in mod or name in mod._types else None


def add(mod: IRModule, name: str | int, source: IRModule | None = None) -> bool:
    """Put a definition of a name into a module, with all that it leans on. False where no library has it. A number is the
    tag of a constructor of the definition.

    Raises `RelayError` where the module has something else under one of these names.
    """
    if isinstance(name, int):
        named = _type_of_tag(name)
        if named is None:
            return False
        name = named
    source = source or find(name)
    if source is None:
        return False
    wanted: list[GlobalVar | GlobalTypeVar] = []
    if name in source:
        wanted.append(source.get_global_var(name))
    if name in source._types:
        wanted.append(source.get_global_type_var(name))
    while wanted:
        var = wanted.pop()
        if isinstance(var, GlobalVar):
            var = source.get_global_var(var.name_hint)
            function = source.functions[var]
            if mod.functions.get(var) is function:
                continue
            _refuse_other(mod, var.name_hint, name, var.name_hint in mod, "@")
            mod[var] = function
            functions, definitions = uses(function)
            wanted += [*functions.values(), *definitions]
        elif var not in mod.type_definitions:
            _refuse_other(mod, var.name_hint, name, var.name_hint in mod._types, "")
            mod[var] = source.type_definitions[var]
            wanted += definition_uses(source.type_definitions[var])
    return True


def _refuse_other(mod: IRModule, name: str, wanted: str, known: bool, sign: str) -> None:
    if not known:
        return
    own = mod.functions[mod._globals[name]] if sign else mod.type_definitions[mod._types[name]]
    raise RelayError(
        error(
            "R0220",
            f"the library's `{wanted}` needs its own `{sign}{name}`, but the module defines another one",
            own.span,
            notes=("give the module's definition another name",),
        )
    )


def import_from_std(mod: IRModule, path: str, place: Span | None = None) -> None:
    """Put all definitions of a file into a module, as TVM's `mod.import_from_std("prelude.rly")` does.

    Raises `RelayError` (R0221) for a file that there is not, at `place`.
    """
    if path not in FILES:
        title = f"there is no library `{path}`"
        near = did_you_mean(path.removesuffix(".rly"), FILES.values())
        fix = Fix(place, f"{near}.rly", f"did you mean `{near}.rly`?") if near and place is not None else None
        notes = [f"there are {', '.join(FILES)}"]
        if fix is None:
            notes.append("files of your own cannot be imported: put their definitions into this text")
        raise RelayError(error("R0221", title, place, notes=notes, fix=fix))
    source = library(FILES[path])
    for name in [*source._types, *source._globals]:
        add(mod, name, source)


def import_all(mod: IRModule, text: str, name: str) -> bool:
    """Put the libraries that a text imports into a module. False where it imports none. Raises `RelayError` (R0221)."""
    imports = list(IMPORT.finditer(text))
    for one in imports:
        import_from_std(mod, one[1], Span(SourceFile(name, text), *one.span(1)))
    return bool(imports)


def without_imports(text: str) -> str:
    """The text with blanks for its imports."""
    return IMPORT.sub(lambda match: " " * len(match[0]), text)


def read(
    text: str,
    name: str = "<string>",
    module: IRModule | None = None,
    constants: Mapping[str, np.ndarray] | None = None,
    metadata: Mapping[str, Sequence[Any]] | None = None,
) -> ParseResult:
    """Read a text that may import `"prelude.rly"`. Its module gets the definitions of the library that it uses.

    `module` has further definitions for the text. `constants` has the values of its constants, by their references.
    `metadata` has all kinds of values: type key -> values by number. Raises `RelayError`.
    """
    if IMPORT.search(text) is None:
        return parse(text, name, module, constants=constants, metadata=metadata)
    known = IRModule(module.functions, module.type_definitions, module.attrs) if module is not None else IRModule()
    own = [*known.functions, *known.type_definitions]
    import_all(known, text, name)
    result = parse(without_imports(text), name, known, constants=constants, metadata=metadata)
    if result.module is not None:
        own_ids = {id(v): None for v in own}
        own_definitions = IRModule(attrs=result.module.attrs)
        for var, function in result.module.functions.items():
            if known.functions.get(var) is not function or id(var) in own_ids:
                own_definitions[var] = function
        for gtv, data in result.module.type_definitions.items():
            if known.type_definitions.get(gtv) is not data or id(gtv) in own_ids:
                own_definitions[gtv] = data
        for function in list(own_definitions.functions.values()):
            functions, definitions = uses(function)
            for var in functions.values():
                if var not in own_definitions.functions:
                    add(own_definitions, var.name_hint)
            for gtv in definitions:
                if gtv not in own_definitions.type_definitions:
                    add(own_definitions, gtv.name_hint)
        for data in list(own_definitions.type_definitions.values()):
            for gtv in definition_uses(data):
                if gtv not in own_definitions.type_definitions:
                    add(own_definitions, gtv.name_hint)
        result.module = own_definitions
    return result


__all__ = ["DTYPES", "FILES", "IMPORT", "add", "find", "import_all", "import_from_std", "library", "read", "without_imports"]
