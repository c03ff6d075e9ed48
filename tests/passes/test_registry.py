"""The table of passes: a pass is a frozen dataclass in one file, found by the name of the file."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Function, IRModule
from relaylang.ops.build import op_call
from relaylang.passes import PASSES
from relaylang.passes.describe import heading, summary
from relaylang.passes.manager import Pass, Sequential
from relaylang.passes.registry import PassTable
from relaylang.passes.spec import parse_passes

#: The passes with options, as TVM's constructors have them.
OPTIONS = {
    "AnnotateTarget": "targets: str | list[str], include_non_call_ops: bool = True",
    "ChangeBatch": "data: Mapping[Var | str, int], batch_size: int = 16",
    "CombineParallelBatchMatmul": "min_num_branches: int = 3",
    "CombineParallelConv2D": "min_num_branches: int = 3",
    "CombineParallelDense": "min_num_branches: int = 3, to_batch: bool = True",
    "ConvertLayout": "desired_layouts: dict[str, list[str]]",
    "DeadCodeElimination": "inline_once: bool = False, ignore_impurity: bool = False",
    "EliminateCommonSubexpr": "fskip: Callable[[Expr], bool] | None = None",
    "EtaExpand": "expand_constructor: bool = False, expand_global_var: bool = False",
    "FakeQuantizationToInteger": "hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: list[str] | None = None",
    "FlexibleShapeDispatch": "buckets: Sequence[int], axis: int = 0, auto_pad: bool = False, pad_value: float = 0, "
    "input_indices: Sequence[int] | None = None, affects_output: bool = True",
    "FoldConstant": "fold_qnn: bool = False",
    "FoldScaleAxis": "computed: bool = True",
    "FuseOps": "fuse_opt_level: int = -1",
    "InlineCompilerFunctionsBoundTo": "global_vars: Sequence[GlobalVar | str]",
    "Legalize": "legalize_map_attr_name: str = 'FTVMLegalize'",
    "MarkCompilerFunctionsAsExtern": "compiler_filter: str = ''",
    "MergeComposite": "pattern_table: Any",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols": "compiler_filter: str = ''",
    "PartitionGraph": "mod_name: str = 'default', bind_constants: bool = True",
    "PlanDevices": "config: Any = 'llvm'",
    "RemoveUnusedFunctions": "entry_functions: list[str] | None = None",
    "SimplifyInference": "operators: list[str] | None = None",
    "SplitArgs": "max_function_args: int",
    "PrintIR": "header: str = '', show_meta_data: bool = False",
    "ToMixedPrecision": "mixed_precision_type: str = 'float16', missing_op_mode: int = 1",
}
#: The passes above level 0; those that name themselves otherwise; those that look at programs without types.
LEVELS = {
    1: "DeadCodeElimination Defunctionalization EtaExpand Inline LambdaLift LazyGradientInit Legalize PartialEvaluate "
    "QnnCanonicalizeOps QuantizeAnnotate QuantizePartition QuantizeRealize RemoveUnusedFunctions SplitArgs ToANormalForm "
    "ToBasicBlockNormalForm ToCPS ToGraphNormalForm UnCPS",
    2: "DynamicToStatic FoldConstant",
    3: "AlterOpLayout BackwardFoldScaleAxis CanonicalizeCast CanonicalizeOps ConvertLayout DefuseOps EliminateCommonSubexpr "
    "FoldScaleAxis ForwardFoldScaleAxis",
    4: "CombineParallelBatchMatmul CombineParallelConv2D CombineParallelDense FastMath",
}
NAMES = {"CombineParallelConv2D": "CombineParallelConv2d", "QnnCanonicalizeOps": "qnn.CanonicalizeOps"}
UNTYPED = {"DynamicToStatic", "InferType"}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_a_frozen_dataclass_with_help(name: str) -> None:
    made = PASSES[name]
    assert summary(made) and heading(name, made) == (f"{name}({OPTIONS[name]})" if name in OPTIONS else name)
    if issubclass(made, Sequential):
        return
    assert dataclasses.is_dataclass(made) and made.__dataclass_params__.frozen  # type: ignore[attr-defined]
    level = next((n for n, names in LEVELS.items() if name in names.split()), 0)
    assert (made.opt_level, made.name or name) == (level, NAMES.get(name, name))
    assert made.required == (() if name in UNTYPED else ("InferType",))
    assert getattr(relay.transform, name) is made or name == "Defunctionalization"


def test_every_name_of_transform_is_there() -> None:
    assert set(PASSES) < set(relay.transform.__all__) == set(dir(relay.transform))
    assert all(hasattr(relay.transform, name) for name in relay.transform.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'FoldConstants'"):
        _ = relay.transform.FoldConstants


def test_options_are_fields() -> None:
    made = relay.transform.FuseOps(2)
    assert made.fuse_opt_level == 2 and repr(made) == "<pass FuseOps>" and made.info.name == "FuseOps"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.fuse_opt_level = 3
    (read,) = parse_passes("ConvertLayout({'nn.conv2d': ['NHWC']})")
    assert read.desired_layouts == {"nn.conv2d": ["NHWC"]}  # type: ignore[attr-defined]
    assert made != relay.transform.FuseOps(2) and len({made, read, made}) == 2


def test_a_pass_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys; from relaylang.passes import PASSES; names = list(PASSES); PASSES['DivToMul']\n"
        "assert 'FuseOps' in names and 'FuseOps' in PASSES and 'relaylang.passes.simplify.div_to_mul' in sys.modules\n"
        "print([m for m in sys.modules if 'fuse_ops' in m or m.startswith(('relaylang.partition', 'relaylang.interpreter'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


PASS = '''"""Negate: the negative of every result."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Function, IRModule
from relaylang.ops.build import op_call
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function


@dataclass(frozen=True)
class NegateResult(Pass):
    """Negate the result of every function, several times."""

    times: int = 1

    opt_level = 2

    def run(self, mod: IRModule) -> IRModule:
        return per_function(mod, self._negated)

    def _negated(self, func: Function) -> Function:
        body = func.body
        for _ in range(self.times):
            body = op_call("negative", [body])
        return Function(func.params, body)
'''


def test_a_new_pass_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wing = tmp_path / "more_passes" / "signs"
    wing.mkdir(parents=True)
    (wing.parent / "__init__.py").touch()
    (wing / "__init__.py").touch()
    (wing / "negate_result.py").write_text(PASS)
    (wing / "helpers.py").write_text("class Helper(Pass):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    table = PassTable(("more_passes",), wing.parent)
    assert list(table) == ["NegateResult"] and table.modules["NegateResult"] == "more_passes.signs.negate_result"
    (made,) = parse_passes("NegateResult(times=2)", table)
    mod = relay.transform.InferType()(relay.parse("def @main(%x: Tensor[(2), float32]) { exp(%x) }"))
    assert relay.astext(made(mod), show_types=False).count("negative") == 2
    assert heading("NegateResult", table["NegateResult"]) == "NegateResult(times: int = 1)"


def test_a_pass_of_a_user_is_checked() -> None:
    @dataclasses.dataclass(frozen=True)
    class Break(Pass):
        kind: str

        def run(self, mod: IRModule) -> IRModule:
            if self.kind == "types":
                return mod.with_functions({gv: Function([], op_call("nn.relu", [])) for gv in mod.functions})
            raise ValueError("no")

    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { exp(%x) }")
    for kind, code in (("types", "R0504"), ("raise", "R0502")):
        with pytest.raises(RelayError) as wrong:
            Break(kind)(mod)
        assert wrong.value.diagnostics[0].code == code and "Break" in str(wrong.value)
