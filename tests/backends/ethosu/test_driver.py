"""Options, reports, archives and everything that can be wrong around them."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends import compile_module, ethosu
from relaylang.backends.ethosu import regions
from relaylang.backends.ethosu.reference import run_tosa
from relaylang.backends.ethosu.vela import ACCELERATORS, CompileError, compile_model, settings
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.runtime.artifact import load, write_sealed
from relaylang.runtime.external import CODEGENS, Region, codegen
from relaylang.syntax import parse
from tests.shared import ROOT

POOL = "def @main(%x: Tensor[(1, 4, 8, 8), int8]) { nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]) }"


def pool() -> IRModule:
    return parse(POOL, "pool.relay").module


def bars() -> IRModule:
    return parse((ROOT / "examples" / "ethosu_bars.relay").read_text(), "bars.relay").module


def codes(wrong: pytest.ExceptionInfo[RelayError]) -> list[str]:
    return [d.code for d in wrong.value.diagnostics]


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_every_accelerator(accelerator: str) -> None:
    artifact = ethosu.compile(bars(), {"accelerator": accelerator})
    (region,) = artifact.regions.values()
    estimate = region.details["estimate"]
    assert estimate["total_cycles"] > 0 and estimate["macs"] > 0 and estimate["memory"]
    assert accelerator in artifact.report()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"accelerator": "ethos-u55-100"}, "unknown accelerator ethos-u55-100"),
        ({"accelerator": "ethos-u55-257"}, "<target>:1:22: .*\n(.*\n)*.*did you mean ethos-u55-256?"),
        ({"accelerator": "u65-512"}, "did you mean ethos-u65-512?"),
        ({"system-config": "Ethos_U65_HighEnd"}, "did you mean Ethos_U65_High_End"),
        ({"system-config": "Ethos_U65_High_End"}, "known: Ethos_U55_Deep_Embedded, Ethos_U55_High_End_Embedded"),
        ({"accelerator": "ethos-u85-256", "system-config": "Ethos_U65_High_End"}, "known: Ethos_U85_SYS_Flash_Low, "),
        ({"memory-mode": "None"}, "known: Sram_Only, Shared_Sram"),
        ({"optimise": "beauty"}, "known: Performance, Size"),
        ({"arena-cache-size": -1}, "is negative"),
    ],
)
def test_wrong_options(options: dict, says: str) -> None:
    with pytest.raises(RelayError, match=says) as wrong:
        settings(options)
    assert codes(wrong) == ["R0602"]


def test_memory_mode_and_cache_size_reach_the_compiler() -> None:
    assert settings({"accelerator": "ethos-u65-256"}).arena_cache_size == 384 * 1024
    small = settings({"accelerator": "ethos-u65-256", "memory-mode": "Dedicated_Sram", "arena-cache-size": 1000})
    assert small.arena_cache_size == 1000
    assert settings({"optimise": "size"}).optimise == "Size"


def test_report_names_places_and_reasons() -> None:
    report = ethosu.compile(bars()).report()
    assert "operations: 7 on the accelerator in 1 region, 3 on the host" in report
    assert "cycles" in report and "OffChipFlash" in report
    assert "25:3 nn.softmax: it works on float32" in report


def test_tools_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ethosu.regor", None)
    with pytest.raises(RelayError, match=r'pip install "relaylang\[ethosu\]"') as wrong:
        compile_module(pool(), "ethos-u, c")
    assert codes(wrong) == ["R0611"]


def test_reference_model_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = ethosu.compile(pool())
    monkeypatch.setitem(sys.modules, "tosa_reference_model", None)
    with pytest.raises(RelayError, match="tosa-tools") as wrong:
        artifact.run(np.zeros((1, 4, 8, 8), "int8"))
    assert codes(wrong) == ["R0611"]


def test_nothing_for_the_accelerator() -> None:
    mod = parse("def @main(%x: Tensor[(2, 2), float32]) { exp(%x) }").module
    with pytest.raises(RelayError) as wrong:
        compile_module(mod, "ethos-u, c")
    assert codes(wrong) == ["R0614", "R0620"]


def test_npu_only() -> None:
    """Every call that stays on the host is an error with its place."""
    text = "def @main(%x: Tensor[(1, 4), int8]) {\n  cumsum(qnn.sigmoid(%x, 0.1f, 0, 0.1f, 0), axis=1)\n}"
    mod = parse(text, "net.relay").module
    with pytest.raises(RelayError) as wrong:
        compile_module(mod, "ethos-u -npu-only, c")
    (found,) = wrong.value.diagnostics
    assert (found.code, found.severity, str(found.span)[:14]) == ("R0620", "error", "net.relay:2:3")
    assert found.title.startswith("cumsum stays on the host")
    assert ethosu.compile(mod).details["operations"] == {"accelerator": 1, "host": 1}


def test_no_host_in_the_target() -> None:
    with pytest.raises(RelayError, match="the target names none") as wrong:
        compile_module(bars(), "ethos-u")
    assert codes(wrong)[0] == "R0614"
    assert compile_module(pool(), "ethos-u").host == {}  # type: ignore[attr-defined]


def test_wrong_program_and_parameters() -> None:
    with pytest.raises(RelayError) as wrong:
        ethosu.compile(parse("def @main(%x: Tensor[(2), int8]) { nn.max_pool2d(%x, pool_size=[2, 2]) }").module)
    assert codes(wrong)[0].startswith("R03")
    with pytest.raises(RelayError, match="has no parameter w"):
        ethosu.compile(pool(), params={"w": np.zeros(3)})
    with pytest.raises(RelayError, match="the input x is"):
        ethosu.compile(pool(), params={"x": np.zeros((1, 4, 8, 8), "float32")})


def test_wrong_inputs() -> None:
    artifact = ethosu.compile(pool())
    for args, named in (((), {}), ((np.zeros(3, "int8"),), {}), ((), {"y": 1}), ((1, 2), {})):
        with pytest.raises(RelayError) as wrong:
            artifact.run(*args, **named)
        assert codes(wrong) == ["R0640"]


def test_archive(tmp_path: Path) -> None:
    artifact = ethosu.compile(bars())
    artifact.save(tmp_path / "a.tar")
    ethosu.compile(bars()).save(tmp_path / "b.tar")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    with tarfile.open(tmp_path / "a.tar") as tar:
        names = tar.getnames()
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        report = tar.extractfile("report.txt").read().decode()  # type: ignore[union-attr]
    (name,) = manifest["regions"]
    assert {f"regions/{name}.npu.bin", f"regions/{name}.weights.bin", f"regions/{name}.tosa"} < set(names)
    assert [s["kind"] for s in manifest["steps"]] == ["host", "region", "host"]
    assert manifest["target"]["accelerator"] == "ethos-u55-256" and report == artifact.report()
    again = load(tmp_path / "a.tar")
    x = np.random.default_rng(0).random((1, 1, 8, 8)).astype("float32")
    np.testing.assert_array_equal(again.run(x), evaluate(bars(), x))
    again.save(tmp_path / "c.tar")
    assert (tmp_path / "c.tar").read_bytes() == (tmp_path / "a.tar").read_bytes()


def test_copies_and_threads(tmp_path: Path) -> None:
    artifact = ethosu.compile(bars())
    x = np.random.default_rng(0).random((1, 1, 8, 8)).astype("float32")
    for again in (pickle.loads(pickle.dumps(artifact)), copy.deepcopy(artifact)):
        np.testing.assert_array_equal(again.run(x), evaluate(bars(), x))
    artifact.save(tmp_path / "a.tar")
    np.testing.assert_array_equal(load(tmp_path / "a.tar", threads=2).run(x), evaluate(bars(), x))


def test_tampered_manifests() -> None:
    """A diagnostic, or a program that runs as before, also if the checksums fit the changes."""
    files = ethosu.compile(bars()).files()
    data = json.loads(files["manifest.json"])
    places: list[tuple[Any, ...]] = []
    stack: list[tuple[Any, ...]] = [(key,) for key in ("format", "version", "inputs", "result", "steps", "regions", "host")]
    while stack:
        place = stack.pop()
        places.append(place)
        value = data
        for key in place:
            value = value[key]
        inner = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
        stack += [(*place, key) for key in inner if len(place) < 4]
    refused = 0
    for place in places[::3]:
        for new in (None, -1, 10**30, "x", [], {}, [None], "gone"):
            changed = json.loads(json.dumps(data))
            holder = changed
            for key in place[:-1]:
                holder = holder[key]
            if new == "gone":
                del holder[place[-1]]
            else:
                holder[place[-1]] = new
            try:
                ethosu.loads(write_sealed({**files, "manifest.json": json.dumps(changed).encode()}))
            except RelayError as wrong:
                assert {d.code for d in wrong.diagnostics} == {"R0641"}, place
                refused += 1
    assert refused > 100
    content = bytearray(write_sealed(files))
    content[content.index(b"COP1") + 5] ^= 1
    with pytest.raises(RelayError, match="damaged"):
        ethosu.loads(bytes(content))


def test_damaged_archives(tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    for content in (b"", b"no archive", b"\0" * 2000):
        file.write_bytes(content)
        with pytest.raises(RelayError) as wrong:
            ethosu.load(file)
        assert codes(wrong) == ["R0641"]
    with pytest.raises(RelayError) as wrong:
        ethosu.load(tmp_path / "absent.tar")
    assert codes(wrong) == ["R0001"]
    with pytest.raises(RelayError) as wrong:
        ethosu.compile(pool()).save(tmp_path / "absent" / "a.tar")
    assert codes(wrong) == ["R0001"] and not (tmp_path / "absent").exists()


def test_what_the_compiler_refuses_stays_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that fails alone goes back with the compiler's words; the rest is compiled."""

    def no_pools(tosa: bytes, how: object) -> object:
        if b"max_pool2d" in tosa:
            raise CompileError("MaxPool: too wet")
        return compile_model(tosa, how)  # type: ignore[arg-type]

    monkeypatch.setattr(regions, "compile_model", no_pools)
    artifact = ethosu.compile(bars())
    assert "nn.max_pool2d: the Ethos-U compiler says: MaxPool: too wet" in artifact.report()
    assert len(artifact.regions) == 2
    x = np.random.default_rng(1).random((1, 1, 8, 8)).astype("float32")
    np.testing.assert_array_equal(artifact.run(x), evaluate(bars(), x))


def test_what_the_compiler_refuses_in_company_stays_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A convolution, then a pad of channels: this compiler takes each alone."""
    text = """def @main(%x: Tensor[(1, 8, 8, 4), int8], %w: Tensor[(3, 3, 4, 8), int8]) {
      %0 = qnn.conv2d(%x, %w, 3, 0, 0.02f, 0.1f, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3],
                      data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32");
      %1 = qnn.requantize(%0, 0.002f, 0, 0.05f, 5, axis=3, out_dtype="int8");
      %2 = nn.pad(%1, 5, pad_width=[[0, 0], [0, 0], [0, 0], [2, 1]]);
      nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2], layout="NHWC")
    }"""

    def no_company(tosa: bytes, how: object) -> object:
        if b"pad line" in tosa and b"conv2d line" in tosa:
            raise CompileError("Pad: only alone")
        return compile_model(tosa, how)  # type: ignore[arg-type]

    monkeypatch.setattr(regions, "compile_model", no_company)
    mod, rng = parse(text).module, np.random.default_rng(1)
    x, w = (rng.integers(-128, 128, s).astype("int8") for s in ((1, 8, 8, 4), (3, 3, 4, 8)))
    artifact = ethosu.compile(mod, params={"w": w})
    assert len(artifact.regions) == 2
    assert "nn.pad: together with the calls before it, the Ethos-U compiler says: Pad: only alone" in artifact.report()
    np.testing.assert_array_equal(artifact.run(x), evaluate(mod, x, w))


def test_junk_to_the_tools() -> None:
    with pytest.raises(CompileError, match="TOSA"):
        compile_model(b"junk", settings({}))


def test_inputs_of_the_reference_model_must_fit() -> None:
    tosa = next(iter(ethosu.compile(pool()).regions.values())).tosa
    with pytest.raises(RelayError) as wrong:
        run_tosa(tosa, [])
    assert codes(wrong) == ["R0613"]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    ethosu.compile(pool()).run(np.zeros((1, 4, 8, 8), "int8"))
    assert capfd.readouterr() == ("", "")


def test_code_of_other_people_on_the_host(tmp_path: Path) -> None:
    def generate(region: Region) -> str:
        loop = "for (int i = 0; i < 64; i++) b[i] = a[i] / 2;"
        return f"int {region.symbol}(const signed char* a, signed char* b) {{ {loop} return 0; }}"

    codegen("cg", generate)
    try:
        mod = parse("""#[version = "0.0.5"]
def @f(%a: Tensor[(1, 4, 4, 4), int8], Compiler="cg", Primitive=1) -> Tensor[(1, 4, 4, 4), int8] { divide(%a, 2i8) }
def @main(%x: Tensor[(1, 4, 8, 8), int8]) { @f(nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])) }
""").module
        artifact = compile_module(mod, "ethos-u, c")
    finally:
        del CODEGENS["cg"]
    x = np.random.default_rng(0).integers(-128, 128, (1, 4, 8, 8)).astype("int8")
    artifact.save(tmp_path / "net.tar")
    for program in (artifact, load(tmp_path / "net.tar")):
        np.testing.assert_array_equal(program.run(x=x), evaluate(mod, x))
    with tarfile.open(tmp_path / "net.tar") as tar:
        host = tar.extractfile("host/host_0.tar")
        assert host is not None and b"external/0.c" in host.read()
