"""TVM's Universal Modular Accelerator interface: a class that adds an accelerator's target, passes, patterns and code.

    class MyBackend(UMABackend):
        target_name = "my_npu"

        def __init__(self):
            super().__init__()
            self._register_pattern("conv2d", is_op("nn.conv2d")(wildcard(), wildcard()))

    backend = MyBackend()
    backend.register()
    lib = relay.build(backend.partition(mod), target=["my_npu", "c"])

The code of its functions comes from `tvm.register_func("relay.ext.my_npu")`. Phases over TIR are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params_by_name
from relaylang.partition.passes.annotate_target import AnnotateTarget
from relaylang.partition.passes.merge_compiler_regions import MergeCompilerRegions
from relaylang.partition.passes.merge_composite import MergeComposite
from relaylang.partition.passes.partition_graph import PartitionGraph
from relaylang.partition.tables import register_pattern_table
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Pass, Sequential
from relaylang.patterns import DFPattern
from relaylang.tvm.arrays import from_python
from relaylang.tvm.external import INCLUDES
from relaylang.tvm.target import ADDED, Target


class PassPhase(Enum):
    """When a pass runs. Those over Relay run here, before or after partitioning."""

    PRE_PARTITIONING = auto()
    POST_PARTITIONING_0 = auto()
    POST_PARTITIONING_1 = auto()
    TIR_PHASE_0 = auto()
    TIR_PHASE_1 = auto()
    TIR_PHASE_2 = auto()
    TIR_PHASE_3 = auto()


def uma_available() -> bool:
    """Whether accelerators can be added: they can."""
    return True


def _refused(what: str, target: str) -> RelayError:
    note = f"tvm.register_func('relay.ext.{target}') registers a function that gets each partitioned function and returns its code"
    return RelayError(error("R0609", f"{what} works on TIR, which is not here", notes=[note]))


class UMAPartitioner:
    """The passes over Relay and the pattern table of an accelerator."""

    def __init__(self, target_name: str, merge_compiler_regions: bool = True) -> None:
        self.target_name = target_name
        self.merge_compiler_regions = merge_compiler_regions
        self._relay_passes: list[tuple[PassPhase, Pass]] = []
        self._patterns: list[tuple[Any, ...]] = []

    def add_pattern(self, name: str, pattern: DFPattern, predicate: Callable[..., Any] | None = None) -> None:
        """Add a row of the table; the composite's name begins with the accelerator's."""
        row = (f"{self.target_name}.{name}", pattern)
        self._patterns.append(row if predicate is None else (*row, predicate))

    def _pattern_table(self) -> list[tuple[Any, ...]]:
        return self._patterns

    def register(self) -> None:
        """Let everybody find the table by the accelerator's name."""
        register_pattern_table(self.target_name, self._pattern_table)

    def _passes(self, phase: PassPhase) -> list[Pass]:
        return [added_pass for when, added_pass in self._relay_passes if when == phase]

    def partition(self, mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
        """The module with what the patterns match in functions for the accelerator. Raises `RelayError`."""
        if params:
            mod = mod.with_functions(mod.functions)
            mod["main"] = bind_params_by_name(mod["main"], {name: from_python(value) for name, value in params.items()})
        passes: list[Pass] = [InferType(), *self._passes(PassPhase.PRE_PARTITIONING), MergeComposite(self._pattern_table())]
        passes.append(AnnotateTarget([self.target_name]))
        passes += [MergeCompilerRegions()] if self.merge_compiler_regions else []
        passes += [PartitionGraph(), *self._passes(PassPhase.POST_PARTITIONING_0), *self._passes(PassPhase.POST_PARTITIONING_1)]
        return Sequential(passes)(mod)


class UMACodegen:
    """The first lines of the C text of an accelerator's functions."""

    def __init__(self, target_name: str) -> None:
        self.target_name = target_name
        self._includes: Callable[[], str] | None = None

    def _register_codegen(self, fmt: str = "c", includes: Callable[[], str] | None = None, **options: Any) -> None:
        if fmt != "c":
            raise RelayError(error("R0609", f"there is no format {fmt} of code for an accelerator", notes=["the format is c"]))
        if options:
            raise _refused(f"the option {next(iter(options))} of a code generator", self.target_name)
        self._includes = includes

    def register(self) -> None:
        """Put the text of `includes` in front of what `relay.ext.NAME` returns."""
        if self._includes is not None:
            INCLUDES[self.target_name] = self._includes


class UMABackend:
    """An accelerator: subclasses give `target_name`, and call the methods `_register_...` where they are made."""

    target_name: Any = ""

    def __init__(self, merge_compiler_regions: bool = True) -> None:
        self._target_attrs: dict[str, Any] = {}
        self._relay_to_relay = UMAPartitioner(self.target_name, merge_compiler_regions)
        self._tir_to_runtime = UMACodegen(self.target_name)

    def _register_target_attr(self, name: str, default: str | int | bool | None = "") -> None:
        """Add an attribute of the target, `my_npu -name=value`, with its default."""
        self._target_attrs[name] = default

    def _register_relay_pass(self, phase: PassPhase, relay_pass: Pass) -> None:
        """Add a pass over Relay. Raises `RelayError` (R0609) for a phase over TIR."""
        if phase.name.startswith("TIR"):
            raise _refused(f"the phase {phase.name}", self.target_name)
        self._relay_to_relay._relay_passes.append((phase, relay_pass))

    def _register_pattern(self, name: str, pattern: DFPattern, predicate: Callable[..., Any] | None = None) -> None:
        """Add a pattern of what the accelerator takes; `predicate` refuses matches."""
        self._relay_to_relay.add_pattern(name, pattern, predicate)

    def _register_operator_strategy(self, op: str, strategy: Any, plevel: int | None = 11) -> None:
        """Raises `RelayError` (R0609): there are no kernels in TIR to choose."""
        raise _refused(f"the strategy of {op}", self.target_name)

    def _register_tir_pass(self, phase: PassPhase, tir_pass: Any) -> None:
        """Raises `RelayError` (R0609): there is no TIR."""
        raise _refused(f"a pass in the phase {phase.name}", self.target_name)

    def _register_codegen(self, fmt: str = "c", **kwargs: Any) -> None:
        """Set how code is written: `includes` is a function that returns the first lines of the C text."""
        self._tir_to_runtime._register_codegen(fmt, **kwargs)

    def register(self) -> None:
        """Add the target and the pattern table. A target that is there stays. Raises `ValueError` for a default of None."""
        if None in self._target_attrs.values():
            raise ValueError("Target attribute None is not supported.")
        if self.target_name not in Target.list_kinds():
            ADDED[self.target_name] = dict(self._target_attrs)
            self._relay_to_relay.register()
            self._tir_to_runtime.register()

    def partition(self, mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
        """The module with what the patterns match in functions for the accelerator. Raises `RelayError`."""
        return self._relay_to_relay.partition(mod, params)


__all__ = ["PassPhase", "UMABackend", "UMACodegen", "UMAPartitioner", "uma_available"]
