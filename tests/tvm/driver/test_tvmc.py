"""tvmc: its command line in TVM's spelling, and its Python functions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.cpu import tuning_log
from relaylang.diagnostics import RelayError
from relaylang.ir import ANY
from relaylang.runtime.artifact import load
from relaylang.runtime.external import CODEGENS
from relaylang.tvm import nd
from relaylang.tvm.contrib import graph_executor
from relaylang.tvm.driver import tvmc
from relaylang.tvm.driver.tvmc.frontends import parse_shapes
from relaylang.tvm.driver.tvmc.main import main
from tests.shared import ROOT

CONV = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  nn.relu(nn.conv2d(%data, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]))
}
"""


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    kept = dict(CODEGENS)
    yield
    CODEGENS.clear()
    CODEGENS.update(kept)


@pytest.fixture
def net(tmp_path: Path) -> str:
    (tmp_path / "net.relay").write_text(CONV)
    return str(tmp_path / "net.relay")


def called(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize("name", ["module.tar", "module.so"])
def test_compile_and_run_as_in_the_tutorial(name: str, tmp_path: Path, capsys: Any) -> None:
    package, inputs, outputs = (str(tmp_path / n) for n in (name, "in.npz", "out.npz"))
    image = np.random.default_rng(0).random((1, 3, 32, 32), "f4")
    np.savez(inputs, data=image)
    net = str(ROOT / "examples/convnet.relay")
    options = ["--target", "llvm", "--input-shapes", "data:[1,3,32,32]", "-O", "3"]
    status, out, err = called(capsys, "compile", *options, "-o", package, net)
    assert (status, err) == (0, "") and name in out
    options = ["--inputs", inputs, "--outputs", outputs, "--print-time", "--repeat", "2", "--number", "3", "--print-top", "3"]
    status, out, err = called(capsys, "run", *options, package)
    assert (status, err) == (0, "") and "Execution time summary" in out
    with np.load(outputs) as found:
        assert found.files == ["output_0"]
        np.testing.assert_array_equal(found["output_0"], load(package).run(image))
        top = np.argsort(found["output_0"][0])[::-1][:3]
    assert all(str(float(n))[0] in out for n in top)


def test_targets_in_tvm_s_spelling(net: str, tmp_path: Path, capsys: Any) -> None:
    package = str(tmp_path / "net.tar")
    for target in ("llvm -mcpu=native -device=arm_cpu -keys=cpu", '{"kind": "llvm", "num-cores": 2}'):
        assert called(capsys, "compile", "--target", target, "-o", package, net)[0] == 0
    assert called(capsys, "compile", "--target=llvm", "--target-llvm-num-threads=1", "-o", package, net)[0] == 0
    assert load(package).manifest["threads"] == 1  # type: ignore[attr-defined]
    (tmp_path / "t.json").write_text('{"kind": "c", "num-threads": 1}')
    assert called(capsys, "compile", "--target", str(tmp_path / "t.json"), "-o", package, net)[0] == 0
    assert load(package).manifest["threads"] == 1  # type: ignore[attr-defined]
    status, _, err = called(capsys, "compile", "--target", "cuda", "-o", package, net)
    assert status != 0 and "R0601" in err


def test_accelerators_need_a_generator(net: str, tmp_path: Path, capsys: Any) -> None:
    target = "ethos-n, llvm -device=arm_cpu -mtriple=aarch64-linux-gnu"
    status, _, err = called(capsys, "compile", "--target", target, "-o", str(tmp_path / "net.tar"), net)
    assert status != 0 and "R0609" in err and "relay partition" in err and "ethos-n" in err
    (tmp_path / "gen.py").write_text(
        "import numpy as np\nimport relaylang as relay\nfrom relaylang.runtime.external import codegen\n\n\n"
        "@codegen('dnnl')\ndef generate(region):\n"
        "    mod = relay.IRModule.from_expr(relay.Function(region.function.params, region.function.body))\n"
        "    call = relay.create_executor('debug', mod).evaluate()\n    return lambda *t: np.copyto(t[-1], call(*t[:-1]))\n"
    )
    package, inputs = str(tmp_path / "net.tar"), str(tmp_path / "in.npz")
    status, out, err = called(
        capsys,
        "compile",
        "--load",
        str(tmp_path / "gen.py"),
        "--target",
        "dnnl, llvm",
        "--dump-offloads",
        "-",
        "--input-shapes",
        "data:[1,3,8,8]",
        "-o",
        package,
        net,
    )
    assert status == 0, err
    assert "go to dnnl" in out
    np.savez(inputs, data=np.ones((1, 3, 8, 8), "f4"))
    status, out, err = called(capsys, "run", "--load", str(tmp_path / "gen.py"), "-i", inputs, package)
    assert (status, err) == (0, "")


@pytest.mark.sample(3)
@pytest.mark.parametrize("forms", ["relay", "c,asm", "relay,s"])
def test_dumps_stand_beside_the_package(forms: str, net: str, tmp_path: Path, capsys: Any) -> None:
    package = str(tmp_path / "net.tar")
    assert called(capsys, "compile", "--dump-code", forms, "-o", package, net)[0] == 0
    signs = {"relay": "nn.conv2d", "c": "relay_run", "asm": ".text", "s": ".text"}
    for form in forms.split(","):
        assert signs[form] in Path(f"{package}.{form}").read_text()


def test_layouts_and_passes(net: str, tmp_path: Path, capsys: Any) -> None:
    package = str(tmp_path / "net.tar")
    options = [
        "--desired-layout",
        "NHWC:HWIO",
        "--dump-code",
        "relay",
        "--pass-config",
        "relay.FuseOps.max_depth=10",
        "--disabled-pass",
        "FastMath,AlterOpLayout",
        "--input-shapes",
        "data:[1,3,8,8]",
    ]
    status, _, err = called(capsys, "compile", *options, "-o", package, net)
    assert (status, err) == (0, "")
    text = Path(f"{package}.relay").read_text()
    assert 'data_layout="NHWC"' in text and 'kernel_layout="HWIO"' in text
    assert called(capsys, "compile", "--mixed-precision", "--dump-code", "relay", "-o", package, net)[0] == 0
    assert "float16" in Path(f"{package}.relay").read_text()
    for wrong in (
        ["--pass-config", "x"],
        ["--pass-config", "no.such=1"],
        ["--input-shapes", "data:1x3"],
        ["--desired-layout", "NHWC", "NCHW"],
    ):
        status, _, err = called(capsys, "compile", *wrong, "-o", package, net)
        assert status != 0 and "error[R" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        (["tune", "-o", "log.jsonl", "--trials", "0"], "--trials 0 is not 1 or more"),
        (["tune", "-o", "log.jsonl", "--tasks", "9"], "--tasks 9 is out of range"),
        (["tune", "-o", "log.jsonl", "--tasks", "a"], "--tasks a names no tasks"),
        (["tune", "-o", "log.jsonl", "--tuning-records", "no_such.log"], "cannot read the log no_such.log"),
        (["tune", "-o", "log.jsonl", "--rpc-tracker", "a:1"], "tuning on another machine"),
        (["micro", "create"], "-f mlf"),
        (["compile", "--dump-code", "ll"], "asm"),
        (["compile", "--dump-code", "tir"], "--emit loops"),
        (["compile", "--runtime", "crt"], "-f mlf"),
        (["compile", "-f", "mlf"], "FILE.tar"),
        (["compile", "--workspace-pools", "sram"], "a section for each memory"),
        (["compile", "--workspace-pools-size-hint-bytes", "sram:10"], "a section for each memory"),
        (["compile", "--print-ir-before", "[x]"], "relay opt"),
        (["compile", "-f", "mlf", "--executor", "aot", "--executor-aot-interface-api=packed"], "interface-api=c"),
        (["compile", "-f", "mlf", "--executor", "aot", "--executor-aot-workspace-byte-alignment", "128"], "64 bytes"),
        (["compile", "--executor-aot-interface-api", "c"], "--executor aot"),
        (["compile", "--executor", "aot", "--executor-aot-interface-api=c"], 'Runtime("crt")'),
        (["compile", "--tuning-records", "no_such.log"], "cannot read the log no_such.log"),
        (["compile", "--executor-graph-link-parms", "1"], "did you mean link-params"),
        (["compile", "--runtime-cpp-system-lib=maybe"], "0 or 1"),
        (["compile", "--runtime-zig-x=1"], "there are cpp, crt"),
        (["compile", "--print-pass-times"], "--time"),
        (["run", "--device", "cuda"], "cuda"),
        (["run", "--device", "micro"], "-f mlf"),
        (["run", "--rpc-tracker", "a:1"], "copy the package"),
        (["fly"], "fly"),
        ([], "a verb"),
        (["compile", "--nothing"], "--nothing"),
        (["compile", "-f", "xyz"], "xyz"),
    ],
)
def test_what_is_refused_says_what_to_use(arguments: list[str], needle: str, net: str, tmp_path: Path, capsys: Any) -> None:
    package = str(tmp_path / "net.so")
    if arguments[:1] == ["run"]:
        assert called(capsys, "compile", "-o", package, net)[0] == 0
        arguments = [*arguments, package]
    elif arguments[:1] == ["compile"]:
        arguments = [*arguments, "-o", package, net]
    elif arguments[:1] == ["tune"]:
        arguments = [*arguments, net]
    status, _, err = called(capsys, *arguments)
    assert status != 0 and needle in err and "error[R" in err and "Traceback" not in err


@pytest.mark.sweep
def test_a_tuned_network_is_compiled(net: str, tmp_path: Path, capsys: Any) -> None:
    log, package = str(tmp_path / "log.jsonl"), str(tmp_path / "net.so")
    call = ["tune", "--target", "llvm", "--tuner", "random", "--trials", "3", "-o", log, net]
    for trials in ("3", "5"):  # the second call goes on from the log
        call[6] = trials
        status, out, err = called(capsys, *call, "--tuning-records", log) if trials == "5" else called(capsys, *call)
        assert (status, err) == (0, "") and "nn.conv2d" in out
        records, notes = tuning_log.load(log)
        assert not notes and len({str(r.choice) for r in records if not r.is_default}) == int(trials)
    assert called(capsys, "compile", "--target", "llvm", "--tuning-records", log, "-o", package, net)[0] == 0
    image, weight = (np.random.default_rng(0).random(shape, "f4") for shape in ((1, 3, 8, 8), (4, 3, 3, 3)))
    mod = relay.parse(CONV)
    wanted = relay.create_executor("graph", mod).evaluate()(image, weight).numpy()
    np.testing.assert_allclose(load(package).run(image, weight), wanted, rtol=1e-5)


def test_inputs_that_do_not_fit(net: str, tmp_path: Path, capsys: Any) -> None:
    package, inputs = str(tmp_path / "net.so"), str(tmp_path / "in.npz")
    assert called(capsys, "compile", "-o", package, net)[0] == 0
    for values, needle in (
        ({"dato": np.ones(3)}, "did you mean data?"),
        ({"data": np.ones(3)}, "is Tensor[(1, 3, 8, 8), float32], not Tensor[(3), float64]"),
    ):
        np.savez(inputs, **values)
        status, _, err = called(capsys, "run", "-i", inputs, package)
        assert status != 0 and needle in err
    assert called(capsys, "run", "-i", str(tmp_path / "none.npz"), package)[0] != 0
    assert called(capsys, "run", inputs)[0] != 0
    assert called(capsys, "compile", str(tmp_path / "none.onnx"))[0] != 0


@pytest.mark.parametrize("mode", ["zeros", "ones", "random"])
def test_other_inputs_are_filled(mode: str, net: str, tmp_path: Path, capsys: Any) -> None:
    package, outputs = str(tmp_path / "net.so"), str(tmp_path / "out.npz")
    assert called(capsys, "compile", "-o", package, net)[0] == 0
    assert called(capsys, "run", "--fill-mode", mode, "-o", outputs, package)[0] == 0
    with np.load(outputs) as found:
        value = found["output_0"]
    assert value.shape == (1, 4, 8, 8) and (value[0, 0, 4, 4] == {"zeros": 0, "ones": 27}.get(mode, value[0, 0, 4, 4]))
    assert called(capsys, "run", "--profile", "--fill-mode", mode, package)[0] != 0  # the file has no clocks


def test_shapes() -> None:
    assert parse_shapes("data:[1,3,-1,?]  x:0:[]") == {"data": [1, 3, ANY, ANY], "x:0": []}
    assert parse_shapes("") == {}
    for wrong in ("data", "data:[1,a]", "data:(1)", ":[1]"):
        with pytest.raises(RelayError):
            parse_shapes(wrong)


def test_python_functions(net: str, tmp_path: Path) -> None:
    model = tvmc.load(net, shape_dict={"data": [1, 3, 8, 8]})
    assert set(model.params) == {"w"}
    model.save(str(tmp_path / "model"))
    again = tvmc.TVMCModel(model_path=str(tmp_path / "model"))
    assert relay.ir.structural_equal(again.mod, model.mod) and list(again.params) == ["w"]
    package = tvmc.compile(model, target="llvm -num-threads=1", package_path=str(tmp_path / "net.tar"))
    assert json.loads(package.graph)["nodes"] and set(package.params) >= {"w"}
    data = np.random.default_rng(1).random((1, 3, 8, 8), "f4")
    result = tvmc.run(package, device="cpu", inputs={"data": data}, benchmark=True, repeat=2, number=1, end_to_end=True)
    wanted = relay.create_executor("debug", model.mod).evaluate()(data, model.params["w"])
    np.testing.assert_allclose(result.get_output("output_0"), wanted, rtol=1e-5, atol=1e-6)
    assert "mean" in str(result) and result.times is not None and len(result.times.results) == 2
    module = graph_executor.GraphModule(package.lib_module["default"](nd.cpu()))
    module.run(data=data)
    np.testing.assert_array_equal(module.get_output(0).numpy(), result.outputs["output_0"])
    assert Path(tvmc.compile(model, target="llvm").package_path).exists()
    with pytest.raises(RelayError, match="R0707"):
        tvmc.tune(model, target="llvm", tuner="xbg")


def test_networks(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("onnx")
    package = str(tmp_path / "digits.tar")
    net = str(ROOT / "examples/digits.onnx")
    status, _, err = called(capsys, "compile", "--model-format", "onnx", "--target", "llvm", "-o", package, net)
    assert status == 0, err
    assert called(capsys, "run", "--print-top", "2", package)[0] == 0


@pytest.mark.sweep
def test_a_host_is_a_note_and_results_have_the_older_option(net: str, tmp_path: Path, capsys: Any) -> None:
    package, results = str(tmp_path / "net.tar"), str(tmp_path / "out.npz")
    status, _, err = called(capsys, "compile", "--target-host", "llvm", "-o", package, net)
    assert status == 0 and err.startswith("note[R0609]: --target-host has no effect")
    assert called(capsys, "run", "--output", results, package)[0] == 0 and np.load(results)["output_0"].shape


def test_other_machines(net: str, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("ziglang")
    package = str(tmp_path / "net.so")
    options = [
        "--target",
        "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
        "--cross-compiler",
        "zig",
        "--cross-compiler-options=-O1",
    ]
    status, out, err = called(capsys, "compile", *options, "-o", package, net)
    assert status == 0 and "net.so" in out, err
    status, _, err = called(capsys, "run", package)
    assert status != 0 and "aarch64" in err


@pytest.mark.sweep
def test_as_a_program(net: str, tmp_path: Path) -> None:
    call = [sys.executable, "-m", "relaylang.tvm.driver.tvmc", "compile", "-o", str(tmp_path / "net.so"), net]
    done = subprocess.run(call, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and "net.so" in done.stdout
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_c_source(net: str, tmp_path: Path, capsys: Any) -> None:
    package = str(tmp_path / "module.tar")
    assert called(capsys, "compile", "-f", "mlf", "--executor", "aot", "--runtime", "crt", "-o", package, net)[0] == 0
    with tarfile.open(package) as tar:
        assert "./metadata.json" in tar.getnames() and "./codegen/host/include/tvmgen_default.h" in tar.getnames()
    assert tvmc.TVMCPackage(package).type == "mlf"
    assert called(capsys, "run", "-o", str(tmp_path / "out.npz"), package)[0] == 0
    assert "output_0" in np.load(tmp_path / "out.npz")


def test_options_of_scripts_for_microcontrollers(net: str, tmp_path: Path, capsys: Any) -> None:
    """The processor is one that no compiler here need know: the C is for any."""
    package = str(tmp_path / "module.tar")
    options = [
        "--target=c",
        "--target-c-mcpu=cortex-m55",
        "--target-c-device",
        "arm_cpu",
        "--target-c-keys",
        "arm_cpu,cpu",
        "--target-c-workspace-byte-alignment",
        "16",
        "--executor",
        "aot",
        "--executor-aot-interface-api=c",
        "--executor-aot-unpacked-api",
        "1",
        "--executor-aot-workspace-byte-alignment=16",
        "--runtime",
        "crt",
        "--runtime-crt-system-lib",
        "0",
        "--pass-config",
        "tir.disable_vectorize=1",
    ]
    assert called(capsys, "compile", *options, "--output-format=mlf", "-o", package, net)[0] == 0
    with tarfile.open(package) as tar:
        (readme, metadata) = (tar.extractfile(f"./{name}") for name in ("runtime/README.md", "metadata.json"))
        assert readme is not None and b"    cc -mcpu=cortex-m55 -O2" in readme.read()
        assert metadata is not None and "-mcpu=cortex-m55" in json.load(metadata)["modules"]["default"]["target"][0]


def test_options_of_the_ethos_u(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    text = 'def @main(%x: Tensor[(1, 4, 4, 4), int8]) { nn.max_pool2d(%x, pool_size=[2, 2], layout="NHWC") }'
    (tmp_path / "pool.relay").write_text(text)
    offloads, package = str(tmp_path / "offloads.txt"), str(tmp_path / "module.tar")
    options = [
        "--target=ethos-u,cmsis-nn,c",
        "--target-ethos-u-accelerator_config=ethos-u55-64",
        "--target-cmsis-nn-mcpu=cortex-m55",
        "--executor=aot",
        "--runtime=crt",
        "-f",
        "mlf",
        "--dump-offloads",
        offloads,
    ]
    assert called(capsys, "compile", *options, "-o", package, str(tmp_path / "pool.relay"))[0] == 0
    with tarfile.open(package) as tar:
        assert any(name.endswith(".npu.bin") for name in tar.getnames())
    assert "operations: 1 on the accelerator in 1 region, 0 on the host" in Path(offloads).read_text()
