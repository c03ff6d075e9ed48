"""Programs in parts: an accelerator computes regions, and the host what lies between them.

A backend of an accelerator partitions a program. `host_parts` gives the parts of the host, which a compiler or the
interpreter makes ready to run. `run_schedule` runs both in order, and `schedule_of` reads the order back from an archive.
`hosted_artifact` has the archive.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relaylang import typing
from relaylang.backends.target import CompileRest
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.interpreter import Evaluator
from relaylang.ir import Expr, Function, GlobalVar, IRModule, MetaRef, TensorType, Tuple, TupleType, binding, post_order
from relaylang.ir.missing import fill_missing, refuse_missing
from relaylang.ops.record import Op
from relaylang.partition.report import QUANTISE_FIRST
from relaylang.partition.schedule import Schedule, Step, make_schedule
from relaylang.passes.simplify.fold_constant import evaluator, fold_expr
from relaylang.runtime import artifact as programs
from relaylang.runtime.artifact import TensorSpec, not_an_artifact
from relaylang.runtime.manifest import count, tensor_spec
from relaylang.runtime.schema import Parser, maybe, one_of, record, several, shown, table, text, wrong
from relaylang.syntax import astext, fromtext

#: An input or output: its name, shape and element type.
Named = tuple[str, TensorSpec]
#: A host step that can be run: its arguments, in order, to its outputs.
HostFunction = Callable[[list[Any]], list[Any]]
#: Makes a module's `@main` ready to run, and gives its program as `save` writes it, if there is one.
CompileHost = Callable[[IRModule], tuple[HostFunction, bytes | None]]
_MAX_RESULT_DEPTH = 50


@dataclass(frozen=True)
class HostStep:
    """A step of the host between regions: as text, as a saved program if compiled, and ready to run."""

    text: str = field(repr=False)
    program: bytes | None = field(repr=False)
    run: HostFunction = field(repr=False)


def check(mod: IRModule) -> IRModule:
    """The module with its types found. Raises `RelayError` where it is wrong."""
    typing.check(mod)
    return mod


def bind_params(mod: IRModule, params: Mapping[str, np.ndarray], entry: str) -> IRModule:
    """The checked module with constants in place of the parameters that `params` names.

    A name is a parameter's, or that of a constant without a value in the text (`meta[relay.Constant][0]`).
    """
    if not params:
        return mod
    func: Function = mod[entry]
    by_name: dict[str, Expr] = {p.name_hint: p for p in func.params}
    missing = [node for node in post_order(func.body) if isinstance(node, MetaRef)]
    by_name.update({node.name_hint: node for node in missing})
    unknown = [name for name in params if name not in by_name]
    if unknown:
        notes = [f"its parameters: {', '.join(by_name) or 'none'}"]
        raise RelayError(error("R0640", f"@{entry} has no parameter {unknown[0]}", func.span, notes=notes))
    for name, value in params.items():
        spec_of(name, by_name[name].checked_type)[1].check(name, value)
    return binding.bind_params(fill_missing(mod, params), params, entry)


def prepared(mod: IRModule, params: Mapping[str, np.ndarray], entry: str) -> IRModule:
    """The checked module with its parameters bound, and constants of the entry folded. Raises `RelayError`."""
    mod = check(bind_params(check(mod), params, entry))
    refuse_missing(mod)
    folded = fold_expr(mod[entry], evaluator(), fold_qnn=True)
    assert isinstance(folded, Function)
    return check(mod.with_functions({**mod.functions, mod.get_global_var(entry): folded}))


def nothing_fits(mod: IRModule, entry: str, accelerator: str, notes: Sequence[Diagnostic]) -> RelayError:
    """The error (R0614) of a program of which the accelerator takes nothing. `notes` say why, call by call."""
    floats = not any(isinstance(node, Op) and node.name.startswith("qnn.") for node in post_order(mod[entry]))
    advice = [QUANTISE_FIRST] if floats else []
    return RelayError([error("R0614", f"nothing in @{entry} can go to {accelerator}", mod[entry].span, notes=advice), *notes])


def spec_of(name: str, ty: Any) -> Named:
    """A name and its static tensor type."""
    if not isinstance(ty, TensorType) or not all(isinstance(d, int) for d in ty.shape):
        raise RelayError(error("R0612", f"the input {name} is `{ty!r}`; a program for an NPU takes tensors of static shape"))
    return name, TensorSpec.of(ty)


def region_tensors(func: Function) -> tuple[tuple[Named, ...], tuple[Named, ...]]:
    """The inputs and outputs of a region."""
    types = func.ret_type.fields if isinstance(func.ret_type, TupleType) else (func.ret_type,)
    inputs = tuple([spec_of(param.name_hint, param.checked_type) for param in func.params])
    return inputs, tuple([spec_of(f"out{number}", ty) for number, ty in enumerate(types)])


def host_parts(
    mod: IRModule,
    entry: str,
    regions: dict[GlobalVar, Function],
    compile_host: CompileHost | None,
    target: str,
    kept: int,
    notes: Sequence[Diagnostic],
) -> tuple[Schedule, tuple[Named, ...], dict[str, HostStep]]:
    """The schedule of a module partitioned for a target, its inputs, and the steps of the host, compiled.

    Raises `RelayError`: R0612 for a result of too many levels, R0614 where operations stay on the host and nothing compiles
    them. `kept` is their number, and `notes` say why, call by call.
    """
    main = mod[entry]
    schedule, host = make_schedule(main, regions), dict[str, HostStep]()
    if _depth(schedule.result) > _MAX_RESULT_DEPTH:
        raise RelayError(error("R0612", f"the result is a tuple nested deeper than {_MAX_RESULT_DEPTH}", main.span))
    others = {gv: f for gv, f in mod.functions.items() if gv not in regions and gv.name_hint != entry}
    for step in schedule.steps:
        if step.is_region:
            continue
        if compile_host is None:
            title = f"{kept} operations of @{entry} stay on the host, and the target names none"
            raise RelayError([error("R0614", title, notes=[f'add one after a comma: --target "{target}, c"']), *notes])
        module = IRModule(others, mod.type_definitions, mod.attrs)
        module["main"] = step.function
        run, program = compile_host(check(module))
        host[step.name] = HostStep(astext(module), program, run)
    return schedule, tuple([spec_of(name, p.checked_type) for name, p in zip(schedule.params, main.params)]), host


def _depth(result: Any) -> int:
    depth, level = 0, [result]
    while level:
        level = [part for node in level if isinstance(node, list) for part in node]
        depth += 1
    return depth


def interpreted(module: IRModule) -> tuple[HostFunction, None]:
    """A host step that the interpreter runs; there is nothing to save but its text."""
    evaluator = Evaluator(module)
    body = module["main"].body

    def run(arguments: list[Any]) -> list[Any]:
        value = evaluator.call("main", tuple(arguments))
        return list(value) if isinstance(body, Tuple) else [value]

    return run, None


def compiled(compile_rest: CompileRest, module: IRModule) -> tuple[HostFunction, bytes]:
    """A host step, compiled for the targets after the accelerator, and what `save` writes of it."""
    code = compile_rest(module)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "host.tar"
        code.save(file)
        return _caller(module, code), file.read_bytes()


def _caller(module: IRModule, code: programs.Artifact) -> HostFunction:
    main = module["main"]

    def run(arguments: list[Any]) -> list[Any]:
        value = code.run(*arguments)
        return list(value) if isinstance(main.body, Tuple) else [value]

    return run


def saved_step(name: str, body: str, program: bytes | None, threads: int | None) -> HostFunction:
    """A host step of an archive, compiled where the archive has its program. Raises `ValueError`, `RelayError`."""
    module = fromtext(body, f"host/{name}.relay")
    if not isinstance(module, IRModule):
        raise ValueError(f"host/{name}.relay is no module")
    check(module)
    if program is None:
        return interpreted(module)[0]
    return _caller(module, programs.loads(program, threads, f"host/{name}.tar"))


def host_files(host: Mapping[str, HostStep]) -> dict[str, bytes]:
    """The files of host steps by their names in an archive."""
    files: dict[str, bytes] = {}
    for name, step in host.items():
        files[f"host/{name}.relay"] = step.text.encode("utf-8")
        if step.program is not None:
            files[f"host/{name}.tar"] = step.program
    return files


def read_host(
    records: Mapping[str, Any], files: Mapping[str, bytes], make_host: Callable[[str, str, bytes | None], HostFunction]
) -> dict[str, HostStep]:
    """The host steps of an archive. Raises `KeyError` for a file that is missing, `ValueError`, `RelayError`."""
    host = {}
    for name, entry in records.items():
        body = files[entry["text"]].decode("utf-8")
        program = None if entry["program"] is None else files[entry["program"]]
        host[name] = HostStep(body, program, make_host(name, body, program))
    return host


def run_schedule(
    schedule: Schedule, values: dict[str, Any], host: Mapping[str, HostStep], region: Callable[[str, list[Any]], list[Any]]
) -> Any:
    """The result of a program for inputs by name. `region` runs a region by its name."""
    for step in schedule.steps:
        arguments = [values[name] for name in step.inputs]
        results = region(step.name, arguments) if step.is_region else host[step.name].run(arguments)
        if len(results) != len(step.outputs):
            raise not_an_artifact("this program", f"the step {step.name} gives {len(results)} of {len(step.outputs)} values")
        values.update(zip(step.outputs, results))
    return _pick(schedule.result, values)


def _pick(result: Any, values: dict[str, Any]) -> Any:
    """The result's value; its nesting is that of tuples that the program writes, a few levels."""
    if isinstance(result, str):
        return values[result]
    return tuple(_pick(part, values) for part in result)


def _nested(place: str, value: Any) -> Any:
    """A result: the name of a value, or a list of results, some levels deep."""
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if isinstance(item, list) and depth < 100:
            stack.extend((part, depth + 1) for part in item)
        elif not isinstance(item, str):
            raise wrong(place, "a value's name, or a list of such", item)
    return value


def named_tensor(place: str, value: Any) -> Named:
    """The parser of a tensor in a manifest."""
    fields = _NAMED(place, value)
    return fields["name"], TensorSpec(*tensor_spec(place, [fields["shape"], fields["dtype"]]))


_NAMED = record({"name": text, "shape": several(count), "dtype": text})
#: The fields of a manifest that say what runs in which order.
FIELDS: dict[str, Parser] = {
    "inputs": several(named_tensor),
    "result": _nested,
    "steps": several(record({"name": text, "kind": one_of("region", "host"), "inputs": several(text), "outputs": several(text)})),
    "host": table(record({"text": text, "program": maybe(text)})),
}


def schedule_fields(schedule: Schedule, inputs: Sequence[Named], host: Mapping[str, HostStep]) -> dict[str, Any]:
    """What a manifest has in these fields."""
    return {
        "inputs": tensor_records(inputs),
        "result": schedule.result,
        "steps": [
            {"name": s.name, "kind": "region" if s.is_region else "host", "inputs": list(s.inputs), "outputs": list(s.outputs)}
            for s in schedule.steps
        ],
        "host": {
            name: {"text": f"host/{name}.relay", "program": f"host/{name}.tar" if step.program is not None else None}
            for name, step in host.items()
        },
    }


def tensor_records(tensors: Sequence[Named]) -> list[dict[str, Any]]:
    """Tensors as a manifest has them."""
    return [{"name": name, "shape": list(spec.shape), "dtype": spec.dtype} for name, spec in tensors]


def schedule_of(manifest: Mapping[str, Any], regions: Mapping[str, tuple[int, int]]) -> Schedule:
    """The schedule of a manifest. `regions` has the numbers of each region's inputs and outputs. Raises `ValueError`."""
    inputs = tuple([name for name, _ in manifest["inputs"]])
    steps = tuple([_step(step, regions, manifest["host"]) for step in manifest["steps"]])
    there = set(inputs)
    if len(there) != len(inputs):
        raise ValueError("an input is named twice")
    for step in steps:
        for name in step.inputs:
            if name not in there:
                raise ValueError(f"the step {step.name} needs {name}, which is not there")
        there.update(step.outputs)
    stack = [manifest["result"]]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif item not in there:
            raise ValueError(f"`result` must name values that are there, not {shown(item)}")
    return Schedule(inputs, steps, manifest["result"])


def _step(step: dict[str, Any], regions: Mapping[str, tuple[int, int]], host: Mapping[str, Any]) -> Step:
    kind, name = step["kind"], step["name"]
    if name not in (regions if kind == "region" else host):
        raise ValueError(f"there is no {kind} {name}")
    inputs, outputs = tuple(step["inputs"]), tuple(step["outputs"])
    if kind == "region" and (len(inputs), len(outputs)) != regions[name]:
        raise ValueError(f"a step gives the region {name} other inputs or outputs than it has")
    nothing = Function((), None)  # type: ignore[arg-type]
    return Step(name, nothing, inputs, outputs, kind == "region")


__all__ = [
    "FIELDS",
    "CompileHost",
    "HostFunction",
    "HostStep",
    "Named",
    "bind_params",
    "check",
    "compiled",
    "host_files",
    "host_parts",
    "interpreted",
    "named_tensor",
    "nothing_fits",
    "prepared",
    "read_host",
    "region_tensors",
    "run_schedule",
    "saved_step",
    "schedule_fields",
    "schedule_of",
    "spec_of",
    "tensor_records",
]
