"""`relay.build` with the executor "aot" and the runtime "crt": C source, as TVM's scripts for microcontrollers want it."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.passes.context import PassContext
from relaylang.tvm.contrib.graph_executor import AotModule
from relaylang.tvm.micro import export_model_library_format
from relaylang.tvm.op.contrib import partition_for_ethosu
from relaylang.tvm.relay.backend import Executor, Runtime
from relaylang.tvm.runtime import cpu

NET = "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3), float32]) { (nn.relu(add(%x, %w)), sum(%x)) }"
X = np.float32([[1, -2, 3], [-4, 5, -6]])
W = np.float32([1, 1, 1])


def built() -> relay.tvm.runtime.program.ExecutorFactoryModule:
    executor = Executor("aot", {"interface-api": "c", "unpacked-api": True})
    return relay.build(relay.parse(NET), "c", executor=executor, runtime=Runtime("crt"), params={"w": W})


def test_it_runs_as_a_graph_executor_does() -> None:
    lib = built()
    assert isinstance(lib.artifact, MicroProgram)
    module = AotModule(lib["default"](cpu(0)))
    module.set_input("x", X)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(X + 1, 0))
    assert module.get_output(1).numpy() == X.sum()


def test_a_graph_executor_for_crt_is_exported_too(tmp_path: Path) -> None:
    lib = relay.build(relay.parse(NET), "c", runtime=Runtime("crt"), params={"w": W}, mod_name="net")
    assert lib.run(X)[1] == X.sum()
    export_model_library_format(lib, tmp_path / "net.tar")
    with tarfile.open(tmp_path / "net.tar") as tar:
        files = {name.removeprefix("./"): tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]
    (node,) = [n for n in json.loads(files["executor-config/graph/net.graph"])["nodes"] if n["op"] == "tvm_op"]
    assert node["attrs"]["func_name"] == "tvmgen_net_run" and b"tvmgen_net_run(" in files["codegen/host/src/net_lib0.c"]
    assert json.loads(files["metadata.json"])["modules"]["net"]["executors"] == ["graph"]


@pytest.mark.parametrize("executor", [Executor("graph"), Executor("aot")])
def test_its_c_text_is_a_module(executor: Executor) -> None:
    lib = relay.build(relay.parse(NET), "c", executor=executor, runtime=Runtime("crt"), params={"w": W}).get_lib()
    (source,) = lib.imported_modules
    assert source.type_key == "c" and source.get_source() == lib.get_source() and "int" in source.get_source()


def test_it_is_exported_as_c(tmp_path: Path) -> None:
    lib = built()
    assert export_model_library_format(lib, tmp_path / "net.tar") == tmp_path / "net.tar"
    lib.export_library(str(tmp_path / "same.tar"))
    assert (tmp_path / "same.tar").read_bytes() == (tmp_path / "net.tar").read_bytes()
    with tarfile.open(tmp_path / "net.tar") as tar:
        tar.extractall(tmp_path)
    (tmp_path / "use.c").write_text("""#include "tvmgen_default.h"
    int main(void) {
      float x[6] = {1, -2, 3, -4, 5, -6}, y[6], s;
      struct tvmgen_default_inputs in = {.x = x};
      struct tvmgen_default_outputs out = {.output0 = y, .output1 = &s};
      return tvmgen_default_run(&in, &out) || y[0] != 2 || y[1] != 0 || s != -3;
    }""")
    source = "codegen/host/src/default_lib0.c"
    flags = ["-Wall", "-Werror", "-Icodegen/host/include"]
    subprocess.run(["cc", *flags, "use.c", source, "-lm", "-o", "use"], cwd=tmp_path, check=True)
    subprocess.run(["./use"], cwd=tmp_path, check=True)
    assert lib.get_lib().get_source() == (tmp_path / source).read_text()
    with pytest.raises(RelayError, match="is for programs for microcontrollers"):
        export_model_library_format([lib, relay.build(relay.parse(NET), "c")], tmp_path / "bad.tar")
    with pytest.raises(RelayError, match="C goes to"):
        lib.export_library(str(tmp_path / "net.so"))


POOL = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 4, 4), int8]) {
  cast(nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], layout="NHWC"), dtype="float32")
}
"""


def test_a_partitioned_module_is_compiled_for_its_accelerator() -> None:
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    mod = partition_for_ethosu(relay.parse(POOL), {})
    options = {"accelerator_config": "ethos-u55-64", "enable_cascader": True}
    with PassContext(opt_level=3, config={"relay.ext.ethos-u.options": options, "tir.disable_vectorize": True}):
        lib = relay.build(mod, "c", executor=Executor("aot"), runtime=Runtime("crt"))
    assert isinstance(lib.artifact, MicroProgram)
    said = lib.artifact.report()
    assert said.startswith("target: ethos-u55-64,") and "operations: 1 on the accelerator in 1 region" in said
    x = np.arange(-32, 32, dtype=np.int8).reshape(1, 4, 4, 4)
    np.testing.assert_array_equal(lib.artifact.run(x), evaluate(relay.parse(POOL), x))


def test_without_its_accelerator_a_part_is_refused() -> None:
    mod = partition_for_ethosu(relay.parse(POOL), {})
    with pytest.raises(RelayError, match="a function of the compiler ethos-u cannot be compiled here"):
        compile_bare_metal(mod, "c")
