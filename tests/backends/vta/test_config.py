"""Configurations: from `vta_config.json`, from options of a target string, and those that cannot be built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relaylang.backends import parse_target
from relaylang.backends.vta.config import Config, config_of
from relaylang.backends.vta.isa import Codec
from relaylang.diagnostics import RelayError

#: The values of TVM's own `vta_config.json`.
TVM = {
    "TARGET": "sim",
    "HW_VER": "0.0.2",
    "LOG_INP_WIDTH": 3,
    "LOG_WGT_WIDTH": 3,
    "LOG_ACC_WIDTH": 5,
    "LOG_BATCH": 0,
    "LOG_BLOCK": 4,
    "LOG_UOP_BUFF_SIZE": 15,
    "LOG_INP_BUFF_SIZE": 15,
    "LOG_WGT_BUFF_SIZE": 18,
    "LOG_ACC_BUFF_SIZE": 17,
}


def _config(text: str) -> Config:
    return config_of(parse_target(text)[0].options)


def test_a_file_and_options_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "vta_config.json"
    file.write_text(json.dumps(TVM))
    assert _config(f"vta -config={file}") == Config() == _config("vta")
    wider = _config(f"vta -config={file} -batch=2 -block-in=32 -block-out=8 -log-inp-buff=16")
    assert (wider.batch, wider.block_in, wider.block_out, wider.log_inp_buff_size) == (2, 32, 8, 16)
    assert str(wider) == "2x32x8_i8w8a32_15_16_18_17"
    assert Config().depth == {"uop": 8192, "inp": 2048, "wgt": 1024, "acc": 2048, "out": 2048, "acc8": 2048}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("vta -block-in=12", "-block-in=12 is no power of two"),
        ("vta -batch=0", "-batch=0 is no power of two"),
        ("vta -block=512", "BLOCK_IN must be from 1 to 256"),
        ("vta -log-wgt-buff=8", "the memory wgt of 2^8 bytes has no room for two elements of 256 bytes"),
        ("vta -log-inp-buff=24", r"the memory inp of 2\^24 bytes has 2\^20 elements"),
        ("vta -log-acc-buff=20 -log-inp-buff=19", "cannot be built: GEMM needs|cannot be built: a micro-operation needs"),
        ("vta -dram-bandwidth=0", "at least 1 byte a cycle"),
        ("vta -block-in=x", "option -block-in of target vta wants a whole number"),
        ("vta -config=absent.json", "cannot read absent.json"),
    ],
)
def test_what_cannot_be_built(target: str, said: str) -> None:
    said = said.replace("2^8", r"2\^8")
    with pytest.raises(RelayError, match=f"R0602.*({said})|R0001.*{said}"):
        Codec(_config(target))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "is no vta_config.json"),
        ("{", "is no vta_config.json"),
        ('{"LOG_BLOCKS": 4}', "LOG_BLOCKS is no key of it"),
        ('{"LOG_BLOCK": "4"}', "LOG_BLOCK is no whole number"),
        ('{"LOG_INP_WIDTH": 4}', "inputs and weights have 8 bits"),
        ('{"LOG_BATCH": -1}', "BATCH must be from 1"),
        ('{"LOG_BLOCK": 9999999999}', "BLOCK_IN must be from 1"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "vta_config.json"
    file.write_text(content)
    with pytest.raises(RelayError, match=f"R0602.*{said}"):
        _config(f"vta -config={file}")
