"""The memories of a program: sections for a linker script, sizes in metadata.json and in the header, warnings of compilers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.runtime.artifact import read_tar
from tests.backends.bare_metal.firmware import HOST
from tests.backends.bare_metal.test_applications import bars, module
from tests.shared import few

FLAGS = (*HOST[1:], "-fwrapv", "-fno-strict-aliasing")
#: Names that the header has for itself, or in both kinds of letters.
NAMES = """def @main(%output: Tensor[(3), int8], %workspace: Tensor[(5), int8], %a: Tensor[(7), int8], %A: Tensor[(9), int8]) {
  (sum(%output), sum(%workspace), sum(%a), sum(%A))
}
"""


#: A convolution whose integers are summed in int32.
SUMMED = """def @main(%x: Tensor[(1, 8, 8, 4), int8], %w: Tensor[(1, 1, 4, 16), int8]) {
  %0 = qnn.conv2d(%x, %w, -5, 0, 0.02f, 0.03f, channels=16, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO",
    out_dtype="int32");
  %1 = qnn.requantize(%0, 0.0006f, 0, 0.05f, 3, axis=3, out_dtype="int8");
  (sum(cast(%1, dtype="int32"), axis=[1, 2])MORE)
}
"""


def unpacked(program: MicroProgram, folder: Path) -> dict[str, bytes]:
    program.save(folder / "net.tar")
    files = read_tar((folder / "net.tar").read_bytes())
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "ethosu_driver.h").write_text(
        "struct ethosu_driver;\nint ethosu_invoke(struct ethosu_driver*, const void*, int, uint64_t*, const size_t*, int);\n"
    )
    return files


def compiled(folder: Path, *flags: str, compiler: str = "cc") -> bytes:
    """The object files of an archive's C."""
    sources = sorted((folder / "codegen/host/src").glob("*.c"))
    command = [compiler, *FLAGS, *flags, "-I.", "-Icodegen/host/include", "-c", *map(str, sources)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return b"".join((folder / f"{source.stem}.o").read_bytes() for source in sources)


@pytest.mark.parametrize(("accelerator", "fast"), [("ethos-u55-256", False), ("ethos-u65-512", True)])
def test_the_memories_of_an_npu_have_sections_and_sizes(accelerator: str, fast: bool, tmp_path: Path) -> None:
    pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    program = compile_bare_metal(bars(), f"ethos-u -accelerator={accelerator}, c")
    assert (program.fast_bytes > 0) == fast and ("the NPU's own memory: " in program.report()) == fast
    files = unpacked(program, tmp_path)
    (main,) = json.loads(files["metadata.json"])["modules"]["default"]["memory"]["functions"]["main"]
    header, source = (files[name].decode() for name in ("codegen/host/include/tvmgen_default.h", "codegen/host/src/default_lib0.c"))
    arrays = {name: int(size) for name, size in re.findall(r"^(?:static )?char (\w+)\[(\d+)\]", source, re.M)}
    sizes = {name: int(size) for name, size in re.findall(r"#define TVMGEN_DEFAULT_(WORKSPACE|FAST)_SIZE (\d+)", header)}
    assert arrays["r_workspace"] == sizes["WORKSPACE"] == main["workspace_size_bytes"]
    (used,) = (code.details["driver"]["scratch_fast"]["bytes"] for code in program.regions.values())
    assert [arrays.get("tvmgen_default_fast", 0), sizes.get("FAST", 0), main.get("fast_memory_size_bytes", 0)] == [used] * 3
    default = {".rodata.tvm", ".bss.noinit.tvm", *([".bss.NoInit.ethos_u_cache"] if fast else [])}
    found = compiled(tmp_path)
    assert all(name.encode() in found for name in default)
    others = {"CONSTANTS": "flash", "WORKSPACE": "ethosu_scratch", **({"FAST": ".sram"} if fast else {})}
    found = compiled(tmp_path, *(f'-DTVMGEN_DEFAULT_{memory}_SECTION="{name}"' for memory, name in others.items()))
    assert all(name.encode() in found for name in others.values())
    assert not any(name.encode() in found for name in default)


@pytest.mark.sweep
@pytest.mark.parametrize("compiler", few(["cc", "clang"], "clang"))
def test_compilers_have_no_warnings(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    unpacked(compile_bare_metal(bars(), "c"), tmp_path)
    compiled(tmp_path, "-O2", compiler=compiler)


@pytest.mark.parametrize("standard", few(["c++98", "c++20"], "c++98"))
def test_cpp_includes_the_header(standard: str, tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no c++ here")
    unpacked(compile_bare_metal(bars(), "c"), tmp_path)
    (tmp_path / "main.cpp").write_text('#include "tvmgen_default.h"\nint main() { return tvmgen_default_run(0, 0); }\n')
    command = ["c++", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Icodegen/host/include", "main.cpp"]
    compiled(tmp_path)
    done = subprocess.run([*command, "default_lib0.o", "-lm", "-o", "app"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sizes_of_tensors_have_names_of_their_own() -> None:
    program = compile_bare_metal(module(NAMES), "c")
    sizes = re.findall(r"#define TVMGEN_DEFAULT_(\w+)_SIZE (\d+)", program.header)
    assert dict(sizes[:4]) == {"OUTPUT": "3", "WORKSPACE_2": "5", "A": "7", "A_2": "9"}
    assert len(dict(sizes)) == len(sizes) == 9


@pytest.mark.sample(3)
@pytest.mark.parametrize(("more", "size"), [("", 1088), (", max(%1)", 1088), (", cast(%1, dtype='int32')", 0)])
def test_no_kernel_writes_wide_numbers_for_a_sum(more: str, size: int) -> None:
    """The workspace has the convolution's int8 numbers."""
    mod = module(SUMMED.replace("MORE", more.replace("'", '"')))
    weight = np.random.default_rng(0).integers(-9, 9, (1, 1, 4, 16)).astype("int8")
    program = compile_bare_metal(mod, "c", {"w": weight})
    assert program.workspace == (size or program.workspace)
    x = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 4)).astype("int8")
    found, right = program.run(x), evaluate(mod, x, weight)
    for one, other in zip(found, right) if isinstance(right, tuple) else [(found, right)]:
        np.testing.assert_array_equal(one, other)


def test_a_limit_of_the_workspace() -> None:
    mod = module("""def @main(%x: Tensor[(4, 64), float32]) {
  %0 = cumsum(%x, axis=1);
  add(nn.softmax(%0), reverse(%0, axis=1))
}
""")
    size = compile_bare_metal(mod, "c").workspace
    assert compile_bare_metal(mod, "c", workspace_limit=size).workspace == size
    with pytest.raises(RelayError) as wrong:
        compile_bare_metal(mod, "c", workspace_limit=size - 1)
    (found,) = wrong.value.diagnostics
    assert found.code == "R0618" and found.title == f"a run needs {size} bytes of workspace, and the limit is {size - 1}"
    assert found.span is not None and found.span.line in (2, 3) and found.notes[0].startswith("most is in use at ")
