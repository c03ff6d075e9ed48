"""Compiles networks for tvmc: its spelling of targets and passes, relaylang's compiler."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.backends.ethosu.artifact import EthosUArtifact
from relaylang.backends.registry import ALIASES, backend_names, parse_target, split_targets, with_options
from relaylang.backends.target import Target
from relaylang.cli.common import report, write_text
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params
from relaylang.partition import explain, partition, prepare, table_text, tables
from relaylang.passes.context import PassContext
from relaylang.passes.infer_type import InferType
from relaylang.passes.layout.convert_layout import ConvertLayout
from relaylang.passes.manager import Sequential
from relaylang.passes.precision.to_mixed_precision import ToMixedPrecision
from relaylang.runtime.external import find
from relaylang.runtime.files import together
from relaylang.tvm.autotvm.dispatcher import ApplyHistoryBest
from relaylang.tvm.build_module import build
from relaylang.tvm.driver.tvmc.model import TVMCModel, TVMCPackage
from relaylang.tvm.relay.backend import Executor, Runtime, executor

#: tvmc's names of accelerators, where relaylang's differ.
_OTHER_NAMES = {"compute-library": "arm_compute_lib", "acl": "arm_compute_lib"}
#: Forms that `--dump-code` has in TVM, and what shows the same here; "" for those that are here.
DUMPS = {
    "relay": "",
    "c": "",
    "asm": "",
    "s": "",
    "ll": "--dump-code asm; there is no LLVM",
    "tir": "relay compile --emit loops",
    "te": "relay compile --emit loops",
}
#: The note for options of TVM's memory pools.
POOLS = "the C has a section for each memory, which a linker script places: docs/bare-metal.md"


def refused(what: str, instead: str) -> RelayError:
    """The error for a part of tvmc that is not here, with what replaces it."""
    return RelayError(error("R0609", f"tvmc: {what} is not here", notes=[instead]))


def offloaded(mod: IRModule, params: Mapping[str, Any], target: str) -> tuple[IRModule, list[Target], list[str]]:
    """The module with parts for accelerators in functions of their own, the targets that compile it, and tables of parts.

    An accelerator that is no backend needs a code generator of its name. Raises `RelayError` (R0601, R0609).
    """
    rest: list[str] = []
    reports: list[str] = []
    for part in split_targets(target):
        name = part.split(None, 1)[0]
        plain = _OTHER_NAMES.get(name, name)
        if name in backend_names() or name in ALIASES or plain not in tables.accelerators():
            rest.append(part)
            continue
        if find(plain) is None:
            notes = [
                f"see the parts: relay partition net.relay --target {plain} --report",
                f"or compile them: --load FILE.py with a code generator {plain} (relaylang.runtime.external)",
            ]
            raise RelayError(error("R0609", f"there is no code generator for the accelerator {name}", notes=notes))
        ready = prepare(mod, plain, params)
        mod = partition(ready, plain)
        reports.append(table_text(explain(ready, mod, plain), plain))
    return mod, parse_target(", ".join(rest or ["c"])), reports


def transformed(mod: IRModule, layouts: Sequence[str], ops: Sequence[str], mixed: str = "", keep: bool = False) -> IRModule:
    """The module with its convolutions in layouts (`NHWC`, `NHWC:HWIO`), one for each of `ops` or one for all.

    With `mixed` it computes in that type. Raises `RelayError` (R0707).
    """
    if layouts:
        if len(layouts) not in (1, len(ops)):
            title = f"{len(layouts)} layouts are given for {len(ops)} operators"
            raise RelayError(error("R0707", title, notes=["give one for all, or one for each of --desired-layout-ops"]))
        pairs = zip(ops, layouts if len(layouts) == len(ops) else list(layouts) * len(ops))
        wanted = {op: [data, kernel or "default"] for op, (data, _, kernel) in ((op, text.partition(":")) for op, text in pairs)}
        mod = Sequential([InferType(), ConvertLayout(wanted), InferType()])(mod)
    if mixed:
        mod = Sequential([InferType(), ToMixedPrecision(mixed), InferType()])(mod)
    return mod


def pass_config(items: Sequence[str] | Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of passes from texts `name=value`. Raises `RelayError` (R0707)."""
    if isinstance(items, Mapping):
        return dict(items)
    options = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals:
            raise RelayError(error("R0707", f"--pass-config wants NAME=VALUE, not {item}"))
        try:
            options[name] = json.loads(value.lower() if value in ("True", "False") else value)
        except ValueError:
            options[name] = value
    return options


def compile_model(
    tvmc_model: TVMCModel,
    target: str,
    opt_level: int = 3,
    executor: Any = None,
    runtime: Any = None,
    tuning_records: str | None = None,
    package_path: str | None = None,
    cross: Any = None,
    cross_options: str | None = None,
    output_format: str = "so",
    dump_code: Sequence[str] | str | None = None,
    dump_offloads: str = "",
    target_host: str | None = None,
    disabled_pass: Sequence[str] | None = None,
    pass_context_configs: Sequence[str] | Mapping[str, Any] | None = None,
    additional_target_options: Mapping[str, Mapping[str, Any]] | None = None,
    use_vm: bool = False,
    mod_name: str = "default",
    workspace_pools: Any = None,
    print_pass_times: bool = False,
    print_ir_before: Sequence[str] | None = None,
    print_ir_after: Sequence[str] | None = None,
    instruments: Sequence[Any] | None = None,
    desired_layout: Sequence[str] | str | None = None,
    desired_layout_ops: Sequence[str] | None = None,
    mixed_precision: bool = False,
    mixed_precision_ops: Sequence[str] | None = None,
    mixed_precision_calculation_type: str | None = None,
    mixed_precision_acc_type: str | None = None,
) -> TVMCPackage:
    """Compile a model and write its package. Returns the package, loaded; for another machine its path alone is set.

    The package is a `.tar` or a library, by the suffix of `package_path`. The format "mlf" is C for a microcontroller in
    TVM's Model Library Format. `tuning_records` is a log of `tune_model` or `relay tune`.
    Raises `RelayError`: what only TVM has is refused (R0609), with what replaces it.
    """
    path = compiled(locals())
    return TVMCPackage(path)


def compiled(given: Mapping[str, Any]) -> str:
    """Compile with the arguments of `compile_model`. Returns the package's path."""
    model: TVMCModel = given["tvmc_model"]
    _refuse(given)
    dumps = given["dump_code"] or ()
    forms = [form.strip() for form in (dumps.split(",") if isinstance(dumps, str) else dumps)]
    for form in forms:
        if DUMPS.get(form, "unknown"):
            raise refused(f"--dump-code {form}", DUMPS.get(form) or f"it has {', '.join(f for f, why in DUMPS.items() if not why)}")
    layouts = given["desired_layout"] or ()
    layouts = [layouts] if isinstance(layouts, str) else list(layouts)
    ops = list(given["desired_layout_ops"] or ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d"))
    mixed = (given["mixed_precision_calculation_type"] or "float16") if given["mixed_precision"] else ""
    context = PassContext(
        opt_level=given["opt_level"],
        disabled_pass=given["disabled_pass"],
        instruments=given["instruments"],
        config=pass_config(given["pass_context_configs"]),
    )
    with context:
        bound = bind_params(model.mod, model.params) if layouts or mixed else model.mod
        mod = transformed(bound, layouts, ops, mixed)
        mod, targets, reports = offloaded(mod, model.params, given["target"])
        targets = [_with_cross(t, given) for t in targets]
        main = {p.name_hint for p in mod["main"].params} if "main" in mod else set()
        params = {name: value for name, value in model.params.items() if name in main}
        source = {"executor": Executor("aot"), "runtime": Runtime("crt")} if given["output_format"] == "mlf" else {}
        with ApplyHistoryBest(given["tuning_records"] or None):
            lib = build(mod, targets, params=params, mod_name=given["mod_name"], **source)
    path = str(given["package_path"] or model.default_package_path())
    with together():
        if given["dump_offloads"]:
            if isinstance(lib.artifact, (EthosUArtifact, MicroProgram)):
                reports.append(lib.artifact.report())
            text = "\n\n".join(reports) or "no accelerator is among the targets: the CPU compiles all calls"
            write_text(None if given["dump_offloads"] == "-" else given["dump_offloads"], text + "\n")
        lib.export_library(path)
        for form in forms:
            text = str(mod) if form == "relay" else lib.lib.get_source("asm" if form in ("asm", "s") else "c")
            write_text(f"{path}.{form}", text)
    return path


def _with_cross(target: Target, arguments: Mapping[str, Any]) -> Target:
    """A target with the cross compiler, and with options that stand beside the target string."""
    more = dict((arguments["additional_target_options"] or {}).get(target.name, {}))
    for alias, own in ALIASES.items():
        if own == target.name:
            more.update((arguments["additional_target_options"] or {}).get(alias, {}))
    if target.name == "c":
        more.update({"cross-compiler": arguments["cross"] or None, "cross-compiler-options": arguments["cross_options"] or None})
    return with_options(target, {key: value for key, value in more.items() if value is not None})


def _refuse(arguments: Mapping[str, Any]) -> None:
    """Raise `RelayError` (R0609) for arguments of which only TVM has the meaning."""
    if callable(arguments["cross"]):
        raise refused("a function as cross compiler", "name the compiler, or relay.build(...).export_library(path, fcompile=...)")
    if arguments["output_format"] not in ("so", "tar", "mlf"):
        near = did_you_mean(arguments["output_format"], ["so", "tar", "mlf"])
        raise RelayError(
            error("R0707", f"unknown output format {arguments['output_format']}", notes=[f"did you mean {near or 'so'}?"])
        )
    executor.check_interface(arguments["executor"], arguments["runtime"])
    if arguments["workspace_pools"]:
        raise refused("--workspace-pools", POOLS)
    if arguments["use_vm"]:
        raise refused("use_vm", "relay.vm.compile, or relay compile")
    for name in ("print_ir_before", "print_ir_after"):
        if arguments[name]:
            raise refused(f"--{name.replace('_', '-')}", "relay opt --passes NAMES --print-after prints a program between passes")
    if arguments["mixed_precision_acc_type"] not in (None, "float32"):
        report([error("R0609", "tvmc: sums are in float32 where they would lose precision", severity="note")])
    for name, known in (
        ("executor", ("graph", "aot")),
        ("runtime", ("cpp", *(["crt"] if arguments["output_format"] == "mlf" else []))),
    ):
        value = getattr(arguments[name], "name", arguments[name]) or known[0]
        if value not in known:
            raise refused(f"--{name} {value}", "-f mlf writes C, which needs no runtime")
    settings = getattr(arguments["executor"], "attrs", {}) if arguments["output_format"] == "mlf" else {}
    if settings.get("interface-api") == "packed":
        raise refused("the packed interface", "--executor-aot-interface-api=c is the interface of the C")
    for key in ("workspace-byte-alignment", "constant-byte-alignment"):
        if 64 % settings.get(key, 64):
            raise refused(f"--executor-aot-{key} {settings[key]}", "memory lies at multiples of 64 bytes")


__all__ = ["DUMPS", "POOLS", "compile_model", "compiled", "offloaded", "pass_config", "refused", "transformed"]
