"""`relay run FILE --compare PROGRAM`: where a compiled program for an Ethos-U first gives other numbers than its source."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.ethosu.comparison import (
    Difference,
    Match,
    Output,
    Value,
    difference_of,
    first_difference,
    matched,
    rows,
    table,
)
from relaylang.cli.arguments import needed_by, values_for
from relaylang.cli.inputs import entry_function
from relaylang.cli.models import import_options
from relaylang.cli.program import check, load
from relaylang.cli.usage import UsageError
from relaylang.interpreter import evaluate
from relaylang.interpreter.values import is_tensor
from relaylang.interpreter.watch import Site, Slots, Watch
from relaylang.ir import Tuple, post_order
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.repl.session import Session


class Comparison:
    """Collects what the streams of an artifact store, while it runs."""

    def __init__(self, args: argparse.Namespace, artifact: Any) -> None:
        if "observe" not in artifact.capabilities:
            raise UsageError("relay run: --compare is for programs compiled for an Ethos-U", "relay run --help")
        self._args, self._artifact = args, artifact
        self._outputs: list[Output] = []
        regions = artifact.regions.items()
        self._layers = {name: {at: layer for at, layer, _ in code.details.get("places", ())} for name, code in regions}
        artifact.observer = self._observe

    def _observe(self, stream: str, command: Any, stored: np.ndarray) -> None:
        layer = self._layers.get(stream, {}).get(command.at, "")
        self._outputs.append(Output(stream, command.at, command.name, layer, stored))

    def report(self, given: Mapping[str, np.ndarray], results: Any) -> int:
        """Print the operations beside the program's values, and how the results differ. Returns the exit status."""
        name = self._args.compare
        program = _Reference(self._args, given)
        kept = _Kept({})
        wanted = program.run(kept)
        matches = matched(self._outputs, kept.values)
        by_value: dict[int, list[Match]] = {}
        for match in matches:
            if match.value is not None:
                by_value.setdefault(match.value, []).append(match)
        again = _Kept(by_value)
        if by_value:
            program.run(again)
        differences = rows(matches, kept.values, again.differences)
        print(table(differences, name), end="")
        first = first_difference(differences)
        if first is not None:
            output, value = first.match.output, first.value
            assert value is not None
            layer = f" ({output.layer})" if output.layer else ""
            print(f"first difference: {output.stream}, the command at byte {output.at:#x}, {output.command}{layer}")
            print(f"  {value.name} {value.place}: {first.difference}")
        return _compare_results(_flat(results), _flat(wanted), name)


def _compare_results(results: list[np.ndarray], wanted: list[np.ndarray], name: str) -> int:
    if [array.shape for array in results] != [array.shape for array in wanted]:
        shapes = [", ".join(map(str, (array.shape for array in arrays))) for arrays in (results, wanted)]
        print(f"the results have the shapes {shapes[0]}; those of {name} have {shapes[1]}")
        return 1
    differences = [difference_of(*pair) for pair in zip(results, wanted)]
    for number, difference in enumerate(differences):
        says = f"the same numbers as in {name}" if difference is None else f"{difference}"
        print(f"result {number}: {says}" if len(results) > 1 else f"result: {says}")
    return int(any(difference is not None for difference in differences))


def _flat(results: Any) -> list[np.ndarray]:
    """The tensors of a result, in order."""
    arrays, stack = [], [results]
    while stack:
        item = stack.pop()
        if isinstance(item, (tuple, list)):
            stack.extend(reversed(item))
        else:
            arrays.append(np.asarray(item))
    return arrays


class _Reference:
    """The program that the results are compared with. Inputs are bound by name, or in order where it has other names."""

    def __init__(self, args: argparse.Namespace, given: Mapping[str, np.ndarray]) -> None:
        program = load(args.compare, options=import_options(args))
        check(program, {})
        function = entry_function(program.module, "main")
        names = [param.name_hint for param in function.params]
        known = dict(given) if set(given) <= set(names) else dict(zip(names, given.values()))
        needed = [node for node in needed_by(function.params, list(post_order(function.body))) if node.name_hint not in known]
        values, _ = values_for(needed, args, {}, Session(None))
        values.update(known)
        self._module = to_anf(program.module)
        self._arguments = [values[name] for name in names]
        self._constants = {name: value for name, value in values.items() if name not in names}

    def run(self, watch: Watch) -> Any:
        return evaluate(self._module, *self._arguments, values=self._constants, watch=watch)


class _Kept(Watch):
    """Keeps every tensor of integers that is bound. Those of which the stream stored a part get its numbers."""

    def __init__(self, matches: Mapping[int, Sequence[Match]]) -> None:
        self.values: list[Value] = []
        self.differences: dict[Match, Difference | None] = {}
        self._matches = matches

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        if isinstance(site.node, Tuple):
            return
        value, span = slots[site.into], site.node.span
        place = f"({site.what})" if span is None else f"({site.what} at {span})"
        if isinstance(value, tuple):
            slots[site.into] = tuple([self._kept(f"{site.variable.name_hint}.{i}", place, field) for i, field in enumerate(value)])
        else:
            slots[site.into] = self._kept(site.variable.name_hint, place, value)

    def _kept(self, name: str, place: str, value: Any) -> Any:
        """The value, or the stream's."""
        if not is_tensor(value) or np.asarray(value).dtype.kind not in "iub":
            return value
        array = np.asarray(value)
        matches = self._matches.get(len(self.values), ())
        self.values.append(Value(f"%{name}", place, array))
        if not matches:
            return value
        array = array.copy()
        for match in matches:
            self.differences[match] = match.put(array)
        return array
