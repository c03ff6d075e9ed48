"""Kernels as CUDA C++: NVIDIA's compiler makes code of them without warnings. Nothing runs them here."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path

import pytest

from relaylang.kernels.cuda import CUDA
from tests.kernels.devices import GROUPS, kernels
from tests.shared import few

OPTIONS = (b"--fmad=false", b"--std=c++17", b"--gpu-architecture=compute_80")


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    """The library of the package nvidia-cuda-nvrtc."""
    found = find_spec("nvidia")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    libraries = [path for folder in folders for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*"))]
    if not libraries:
        pytest.skip("nvidia-cuda-nvrtc is not installed")
    return ctypes.CDLL(str(libraries[0]))


def compiled(nvrtc: ctypes.CDLL, text: str) -> tuple[int, str]:
    """The compiler's status and its messages."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
    status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status, log.value.decode()


@pytest.mark.parametrize("group", few(range(len(GROUPS)), 0))
def test_kernels_build_without_warnings(group: int, nvrtc: ctypes.CDLL) -> None:
    text, _ = kernels(GROUPS[group], CUDA)
    assert compiled(nvrtc, text) == (0, "")


def test_a_mistake_is_noticed(nvrtc: ctypes.CDLL) -> None:
    status, log = compiled(nvrtc, "void f() { undefined(); }")
    assert status != 0
    assert "undefined" in log
