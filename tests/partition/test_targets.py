"""The accelerators' files: how they are found, and each row's condition against recorded answers of TVM 0.16."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, Function, IRModule, TensorType, Var, post_order
from relaylang.ops.record import Op
from relaylang.partition import (
    accelerators,
    bind_params,
    get_pattern_table,
    partition,
)
from relaylang.partition.recipe import Recipe
from relaylang.partition.targets import arm_compute_lib, find_target, recipe_of, target_names
from relaylang.passes.spec import parse_passes
from relaylang.transform import AnnotateTarget, InferType, MergeComposite
from relaylang.tvm.op.contrib import (
    partition_for_arm_compute_lib,
    partition_for_bnns,
    partition_for_cutlass,
    partition_for_dnnl,
    partition_for_ethosu,
    partition_for_tensorrt,
)
from relaylang.tvm.target import Target
from tests.partition.rows import PROGRAMS
from tests.passes.meaning import keeps_meaning
from tests.shared import ROOT, syntax_tree

RECORDED = json.loads((Path(__file__).parent / "recorded_rows.json").read_text())


def program(text: str) -> IRModule:
    """The program with constants for the parameters that stand for some."""
    mod = InferType()(relay.parse(text))
    values = {}
    for param in mod["main"].params:
        ty = param.checked_type
        if param.name_hint.startswith("c") and isinstance(ty, TensorType):
            make = np.zeros if param.name_hint.startswith("cz") else np.ones
            values[param.name_hint] = make(ty.shape, ty.dtype)
    return InferType()(bind_params(mod, values))


def taken(mod: IRModule, target: str) -> list[str]:
    """The composites that are made, and the operators that a target takes as they are."""
    table: list = get_pattern_table(target)
    if target == "arm_compute_lib":
        table = arm_compute_lib.pattern_table([])
    if target == "ethos-n":  # TVM asks the driver's library, which is not there: the patterns alone
        table = [(row.name, row.pattern) for row in table]
    done = AnnotateTarget(target)(MergeComposite(table)(mod))
    found = set()
    for node in post_order(done["main"]):
        if isinstance(node, Function) and "Composite" in node.attrs:
            found.add(node.attrs["Composite"])
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "annotation.compiler_end":
            inner = node.args[0]
            if node.attrs.compiler == target and isinstance(inner, Call) and isinstance(inner.op, Op) and target != "ethos-n":
                found.add(inner.op.name)
    return sorted(found)


#: Rows of TVM's TensorRT that have the wrong number of operands, and match no call.
UNMATCHED_IN_TVM = {
    "conv3d_transpose": ["tensorrt.nn.conv3d_transpose"],
    "layer_norm": ["tensorrt.nn.layer_norm"],
    "pad": ["tensorrt.nn.pad"],
    "squeeze": ["tensorrt.squeeze"],
}


@pytest.mark.sweep
def test_every_row_takes_what_tvms_takes() -> None:
    """198 programs for seven tables.

    TVM raises an exception where a pad stands before a convolution of CMSIS-NN. It also raises one where the second
    summand is a convolution of CUTLASS.
    """
    assert list(RECORDED) == list(PROGRAMS)
    other = {}
    for name, text in PROGRAMS.items():
        mod = program(text)
        for target in accelerators():
            if target in ("ethos-u", "vta"):
                continue  # not TVM's tables
            wanted = RECORDED[name].get(target, [])
            if target == "tensorrt" and name in UNMATCHED_IN_TVM:
                assert wanted == []
                wanted = UNMATCHED_IN_TVM[name]
            have = taken(mod, target)
            if wanted is not None and have != wanted:
                other[name, target] = have, wanted
    assert other == {}


def test_onednn_takes_an_importers_mish() -> None:
    text = (
        "def @main(%x: Tensor[(1, 4, 8, 8), float32], %cw: Tensor[(6, 4, 3, 3), float32]) {"
        " %0 = nn.conv2d(%x, %cw, padding=[1, 1, 1, 1], channels=6, kernel_size=[3, 3]); %1 = exp(negative(abs(%0)));"
        " %2 = multiply(atanh(divide(%1, add(%1, 2f))), 2f); multiply(%0, tanh(add(nn.relu(%0), %2))) }"
    )
    assert taken(program(text), "dnnl") == ["dnnl.conv2d_mish"]


#: What the Ethos-N takes, whose library TVM asks: the conditions that stand before that.
ETHOS_N = {
    "qnn conv": True,
    "qnn conv clip": True,
    "qnn conv without bias": False,
    "qnn conv uint8": True,
    "qnn conv, batch 2": False,
    "qnn conv padded": True,
    "qnn conv padded twice": False,
    "qnn conv dilated": False,
    "qnn dense": True,
    "avg_pool2d int8": True,
    "avg_pool2d int8 NCHW": False,
    "sigmoid uint8": True,
    "sigmoid uint8, another scale": False,
    "tanh uint8": True,
    "tanh uint8, another zero point": False,
    "leaky_relu int8": True,
    "mean int8": True,
    "resize nearest": True,
    "resize linear": False,
    "requantize": True,
    "qnn.add": True,
    "qnn.add channels": True,
    "qnn.mul": False,
    "qnn.mul channels": True,
    "max_pool2d int8": True,
    "max_pool2d int8, batch 2": False,
    "max_pool2d int8 NCHW": False,
    "clip int8": True,
    "split int8": True,
    "qnn.concatenate": True,
    "depth_to_space": True,
    "softmax int8": False,
    "conv2d": False,
}


@pytest.mark.parametrize("name", ETHOS_N)
def test_what_the_ethos_n_takes(name: str) -> None:
    done = partition(program(PROGRAMS[name]), "ethos-n")
    assert any("Compiler" in f.attrs for f in done.functions.values()) == ETHOS_N[name]


def test_products_with_scalars_that_the_scale_takes_up() -> None:
    """The Ethos-N reads the bytes by another scale, where that is the same."""
    text = "def @main(%x: Tensor[(1, 8, 8, 4), uint8]) { qnn.mul(%x, C, 0.5f, 0, 0.5f, 0, SCALE, 0) }"
    for scale, fits in [("1.5f", True), ("0.5f", False)]:
        mod = InferType()(relay.parse(text.replace("SCALE", scale).replace("C", "%c").replace("uint8])", "uint8], %c: uint8)")))
        mod = InferType()(bind_params(mod, {"c": np.uint8(6)}))
        names = [
            n.attrs["Composite"]
            for f in partition(mod, "ethos-n").functions.values()
            for n in post_order(f)
            if isinstance(n, Function) and "Composite" in n.attrs
        ]
        assert names == (["ethos-n.qnn_mul_to_reinterpret_quantize"] if fits else [])


def regions(mod: IRModule) -> list[str]:
    return [gv.name_hint for gv, f in mod.functions.items() if "Compiler" in f.attrs]


def test_regions_without_a_product_are_taken_back() -> None:
    """oneDNN's, where there are several: TVM's prune_dnnl_subgraphs."""
    text = (
        "def @main(%x: Tensor[(2, 3), float32], %cw: Tensor[(5, 3), float32]) {"
        " %0 = nn.relu(nn.dense(%x, %cw, units=5)); %1 = erf(%0); (exp(%1), nn.relu(tanh(%1))) }"
    )
    mod = program(text)
    assert len(regions(partition_for_dnnl(mod, prune_subgraphs=False))) == 2
    done = keeps_meaning(partition_for_dnnl, mod)
    assert len(regions(done)) == 1
    assert not any(isinstance(n, Function) for n in post_order(done["main"].body))


def test_concatenation_is_off_unless_asked_for() -> None:
    mod = program(PROGRAMS["concatenate"])
    assert regions(partition_for_arm_compute_lib(mod)) == []
    assert len(regions(partition_for_arm_compute_lib(mod, disabled_ops=[]))) == 1


def test_neighbours_are_merged_where_tvm_merges_them() -> None:
    mod = program("def @main(%x: Tensor[(1, 4, 8, 8), float32]) { nn.global_avg_pool2d(nn.max_pool2d(%x, pool_size=[2, 2])) }")
    assert len(regions(partition_for_bnns(mod))) == 2
    assert len(regions(partition(mod, "dnnl"))) == 1


def test_the_modules_name_goes_into_the_regions() -> None:
    mod = program(PROGRAMS["max_pool2d int8"])
    assert regions(partition_for_ethosu(mod, mod_name="net")) == ["tvmgen_net_ethos_u_main_0"]


def test_the_constants_of_cutlass_stay_outside() -> None:
    done = keeps_meaning(partition_for_cutlass, program(PROGRAMS["dense add relu"]))
    (region,) = (f for f in done.functions.values() if "Compiler" in f.attrs)
    assert [str(p.checked_type) for p in region.params] == [
        "Tensor[(2, 3), float32]",
        "Tensor[(5, 3), float32]",
        "Tensor[(5), float32]",
    ]
    assert not any(isinstance(n, Constant) for n in post_order(region))
    assert sum(isinstance(n, Constant) for n in post_order(done["main"])) == 2


def test_a_convolution_of_cutlass_may_be_the_second_summand() -> None:
    assert taken(program(PROGRAMS["OHWI residual relu"]), "cutlass") == ["cutlass.conv2d_bias_residual_add_relu"]


#: Program, what TensorRT's target says, and the composites that it takes then.
SETTINGS = [
    ("unary", "", 12),
    ("unary", "-tensorrt_version=7.2.1", 13),
    ("unary", "-tensorrt_version=5.0.0", 7),
    ("open batch", "", 1),
    ("open batch", "-use_implicit_batch=False", 0),
    ("transpose of the batch", "-use_implicit_batch=False", 1),
    ("sum of all", "-use_implicit_batch=0", 1),
    ("float16 and more", "-use_fp16=True", 1),
    ("binary", "-remove_no_mac_subgraphs=True", 0),
    ("sum", "-remove_no_mac_subgraphs=1", 1),
]


@pytest.mark.parametrize("name, said, count", SETTINGS)
def test_the_target_says_what_tensorrt_takes(name: str, said: str, count: int) -> None:
    done = partition_for_tensorrt(program(PROGRAMS[name]), target=f"tensorrt {said}")
    nodes = [n for f in done.functions.values() for n in post_order(f)]
    assert sum(isinstance(n, Function) and "Composite" in n.attrs for n in nodes) == count


def test_tensorrt_takes_the_target_of_the_with_block() -> None:
    mod = program(PROGRAMS["float16 and more"])
    with Target("tensorrt -use_fp16=True"):
        assert regions(partition_for_tensorrt(mod)) == ["tvmgen_default_tensorrt_main_0"]
    with Target("llvm"):
        assert regions(partition_for_tensorrt(mod)) == []


@pytest.mark.parametrize(
    "target, word", [("cuda", 'takes a target "tensorrt"'), ("tensorrt -tensorrt_version=seven", "three numbers")]
)
def test_a_wrong_target_of_tensorrt_is_refused(target: str, word: str) -> None:
    with pytest.raises(RelayError, match=word):
        partition_for_tensorrt(program(PROGRAMS["sum"]), target=target)


def test_the_options_of_tvm_0_8_give_a_pair() -> None:
    mod = program(PROGRAMS["unary"])
    done, config = partition_for_tensorrt(mod, version=(7, 2, 1), use_implicit_batch=False)
    assert sum("Composite" in n.attrs for f in done.functions.values() for n in post_order(f) if isinstance(n, Function)) == 13
    assert config["tensorrt_version"] == (7, 2, 1) and config["use_implicit_batch"] is False
    assert config["max_workspace_size"] == 1 << 30
    for wrong, said in ({"verson": (7, 2, 1)}, "has no option verson"), ({"target": "tensorrt", "use_fp16": True}, "and not both"):
        with pytest.raises(RelayError, match=said):
            partition_for_tensorrt(mod, **wrong)


def test_dropout_splits_no_region_of_tensorrt() -> None:
    mod = program("def @main(%x: Tensor[(2, 3), float32]) { %0 = nn.dropout(nn.relu(%x)); exp(%0.0) }")
    done = keeps_meaning(lambda m: partition(m, "tensorrt"), mod)
    assert len(regions(done)) == 1 and isinstance(done["main"].body, Call) and isinstance(done["main"].body.args[0], Var)


def test_regions_with_several_batches_go_back_to_the_host() -> None:
    """TensorRT has one batch for all inputs, where that is implicit."""
    text = "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(1, 3), float32]) { nn.relu(add(%x, %y)) }"
    assert regions(partition(program(text), "tensorrt")) == []
    assert len(regions(partition_for_tensorrt(program(text), target="tensorrt -use_implicit_batch=False"))) == 1


# ---- files


def test_each_accelerator_is_a_file() -> None:
    assert target_names() == ["arm_compute_lib", "bnns", "cmsis-nn", "cutlass", "dnnl", "ethos-n", "ethos-u", "tensorrt", "vta"]
    for name in target_names():
        module = find_target(name)
        assert module is not None and module.RECIPE.name == name
        assert [row.name.partition(".")[0] for row in module.pattern_table()] == [name] * len(module.pattern_table())
        assert parse_passes(module.RECIPE.prepare)
    assert find_target("toy") is None and recipe_of("toy") == Recipe("toy")


def test_names_are_listed_without_imports() -> None:
    """Only the accelerator that somebody asks for is imported."""
    asked = (
        "import sys; from relaylang.partition.tables import accelerators, get_pattern_table; accelerators(); "
        "get_pattern_table('bnns'); start = 'relaylang.partition.targets.'; "
        "print(sorted(n.removeprefix(start) for n in sys.modules if n.startswith(start)))"
    )
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "['bnns']"


def test_no_other_file_of_the_engine_names_an_accelerator() -> None:
    folder = ROOT / "relaylang" / "partition"
    found = []
    for file in sorted(folder.rglob("*.py")):
        if (folder / "targets") in file.parents and file.name != "__init__.py":
            continue
        if file.parent.parent == folder / "targets":
            continue
        tree = syntax_tree(file)
        docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                found += [f"{file.name}:{node.lineno} {name}" for name in target_names() if name in node.value]
    assert found == []


def test_regions_have_tvms_numbers() -> None:
    """A region's number counts the values that regions before it get from outside, constants included."""
    mod = program("""def @main(%x: Tensor[(1, 6, 8, 8), float32], %cb: Tensor[(6, 1, 1), float32], %r: Tensor[(8, 8), float32]) {
        add(nn.relu(add(add(%x, %cb), %r)), %r) }""")
    names = {gv.name_hint for gv in partition(mod, "arm_compute_lib").get_global_vars()}
    assert names == {"main", *(f"tvmgen_default_arm_compute_lib_main_{n}" for n in (0, 2, 4))}
    func = partition(mod, "arm_compute_lib")["tvmgen_default_arm_compute_lib_main_2"]
    assert [p.name_hint for p in func.params] == ["arm_compute_lib_2_i0", "arm_compute_lib_2_i1"]


def test_bnns_takes_a_normalisation_whole() -> None:
    done = partition(program(PROGRAMS["instance_norm"]), "bnns")
    (region,) = (f for f in done.functions.values() if f.attrs.get("Compiler") == "bnns")
    assert isinstance(region.body, Call) and region.body.op == relay.op.get("nn.instance_norm")
