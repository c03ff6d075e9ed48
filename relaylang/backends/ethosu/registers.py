"""The commands of Ethos-U command streams, by their numbers, for each product.

Names and numbers are those of Arm's `ethos_u_core_driver` (`ethosu55_interface.h` and its kin), without `NPU_`.
"""

from __future__ import annotations

_OPERATIONS = {
    0: "OP_STOP",
    1: "OP_IRQ",
    2: "OP_CONV",
    3: "OP_DEPTHWISE",
    5: "OP_POOL",
    6: "OP_ELEMENTWISE",
    16: "OP_DMA_START",
    17: "OP_DMA_WAIT",
    18: "OP_KERNEL_WAIT",
    19: "OP_PMU_MASK",
}

_SHORT = _OPERATIONS | {
    256: "SET_IFM_PAD_TOP", 257: "SET_IFM_PAD_LEFT", 258: "SET_IFM_PAD_RIGHT", 259: "SET_IFM_PAD_BOTTOM",
    260: "SET_IFM_DEPTH_M1", 261: "SET_IFM_PRECISION", 263: "SET_IFM_UPSCALE", 265: "SET_IFM_ZERO_POINT",
    266: "SET_IFM_WIDTH0_M1", 267: "SET_IFM_HEIGHT0_M1", 268: "SET_IFM_HEIGHT1_M1", 271: "SET_IFM_REGION",
    273: "SET_OFM_WIDTH_M1", 274: "SET_OFM_HEIGHT_M1", 275: "SET_OFM_DEPTH_M1", 276: "SET_OFM_PRECISION",
    277: "SET_OFM_BLK_WIDTH_M1", 278: "SET_OFM_BLK_HEIGHT_M1", 279: "SET_OFM_BLK_DEPTH_M1", 280: "SET_OFM_ZERO_POINT",
    282: "SET_OFM_WIDTH0_M1", 283: "SET_OFM_HEIGHT0_M1", 284: "SET_OFM_HEIGHT1_M1", 287: "SET_OFM_REGION",
    288: "SET_KERNEL_WIDTH_M1", 289: "SET_KERNEL_HEIGHT_M1", 290: "SET_KERNEL_STRIDE", 292: "SET_ACC_FORMAT",
    293: "SET_ACTIVATION", 294: "SET_ACTIVATION_MIN", 295: "SET_ACTIVATION_MAX", 296: "SET_WEIGHT_REGION",
    297: "SET_SCALE_REGION", 303: "SET_BLOCKDEP", 304: "SET_DMA0_SRC_REGION", 305: "SET_DMA0_DST_REGION",
    306: "SET_DMA0_SIZE0", 307: "SET_DMA0_SIZE1", 384: "SET_IFM2_BROADCAST", 389: "SET_IFM2_PRECISION",
    393: "SET_IFM2_ZERO_POINT", 394: "SET_IFM2_WIDTH0_M1", 395: "SET_IFM2_HEIGHT0_M1", 396: "SET_IFM2_HEIGHT1_M1",
    399: "SET_IFM2_REGION",
}  # fmt: skip

_LONG = {
    0: "SET_IFM_BASE0",
    1: "SET_IFM_BASE1",
    2: "SET_IFM_BASE2",
    3: "SET_IFM_BASE3",
    4: "SET_IFM_STRIDE_X",
    5: "SET_IFM_STRIDE_Y",
    6: "SET_IFM_STRIDE_C",
    16: "SET_OFM_BASE0",
    17: "SET_OFM_BASE1",
    18: "SET_OFM_BASE2",
    19: "SET_OFM_BASE3",
    20: "SET_OFM_STRIDE_X",
    21: "SET_OFM_STRIDE_Y",
    22: "SET_OFM_STRIDE_C",
    32: "SET_WEIGHT_BASE",
    33: "SET_WEIGHT_LENGTH",
    34: "SET_SCALE_BASE",
    35: "SET_SCALE_LENGTH",
    36: "SET_OFM_SCALE",
    48: "SET_DMA0_SRC",
    49: "SET_DMA0_DST",
    50: "SET_DMA0_LEN",
    128: "SET_IFM2_BASE0",
    129: "SET_IFM2_BASE1",
    130: "SET_IFM2_BASE2",
    131: "SET_IFM2_BASE3",
    132: "SET_IFM2_STRIDE_X",
    133: "SET_IFM2_STRIDE_Y",
    134: "SET_IFM2_STRIDE_C",
}

_U55_SHORT = _SHORT | {269: "SET_IFM_IB_END", 301: "SET_AB_START", 385: "SET_IFM2_SCALAR", 397: "SET_IFM2_IB_START"}
_U55_LONG = _LONG | {37: "SET_OPA_SCALE", 38: "SET_OPB_SCALE", **{160 + i: f"SET_USER_DEFINED{i}" for i in range(8)}}
_U65_LONG = _LONG | {
    37: "SET_OPA_SCALE",
    38: "SET_OPB_SCALE",
    51: "SET_DMA0_SKIP0",
    52: "SET_DMA0_SKIP1",
    144: "SET_WEIGHT1_BASE",
    145: "SET_WEIGHT1_LENGTH",
    146: "SET_SCALE1_BASE",
    147: "SET_SCALE1_LENGTH",
}
_U85_SHORT = _SHORT | {
    7: "OP_RESIZE",
    264: "SET_IFM_BROADCAST",
    298: "SET_RESIZE_X_SCALE_N_M1",
    299: "SET_RESIZE_Y_SCALE_N_M1",
    300: "SET_RESIZE_X_OFFSET",
    301: "SET_RESIZE_Y_OFFSET",
    302: "SET_WEIGHT_FORMAT",
    308: "SET_DMA0_IDX_REGION",
}
_U85_LONG = _LONG | {
    37: "SET_IFM_SCALE",
    38: "SET_IFM2_SCALE",
    39: "SET_OP_SCALAR",
    51: "SET_DMA0_SRC_STRIDE0",
    52: "SET_DMA0_SRC_STRIDE1",
    53: "SET_DMA0_DST_STRIDE0",
    54: "SET_DMA0_DST_STRIDE1",
    55: "SET_DMA0_IDX",
    56: "SET_DMA0_IDX_MAX",
    57: "SET_DMA0_IDX_SKIP1",
    144: "SET_WEIGHT1_BASE",
    145: "SET_WEIGHT1_LENGTH",
    146: "SET_WEIGHT2_BASE",
    147: "SET_WEIGHT2_LENGTH",
    148: "SET_WEIGHT3_BASE",
    149: "SET_WEIGHT3_LENGTH",
    150: "SET_RESIZE_X",
    151: "SET_RESIZE_Y",
    256: "OP_BRANCH",
}

#: Product -> the commands of one word by number, and those of two words.
COMMANDS: dict[str, tuple[dict[int, str], dict[int, str]]] = {
    "ethos-u55": (_U55_SHORT, _U55_LONG),
    "ethos-u65": (_U55_SHORT | {291: "SET_PARALLEL_MODE"}, _U65_LONG),
    "ethos-u85": (_U85_SHORT, _U85_LONG),
}

#: Register -> field -> its lowest bit, and its number of bits. All are of the first word's upper half.
Fields = dict[str, dict[str, tuple[int, int]]]

_IFM_FIELDS = {"activation_type": (0, 1), "activation_precision": (2, 2), "activation_format": (6, 2)}
_OFM_FIELDS = {"activation_type": (0, 1), "activation_precision": (1, 2), "activation_format": (6, 2), "scale_mode": (8, 1)}
_DMA_FIELDS = {"region": (0, 3), "region_mode": (8, 1), "stride_mode": (9, 2)}
_FIELDS: Fields = {
    "KERNEL_STRIDE": {
        "stride_x_lsb": (0, 1),
        "stride_y_lsb": (1, 1),
        "weight_order": (2, 1),
        "dilation_x": (3, 1),
        "dilation_y": (4, 1),
        "stride_x_msb": (6, 3),
        "stride_y_msb": (9, 3),
    },
    "DMA0_SRC_REGION": _DMA_FIELDS,
    "DMA0_DST_REGION": _DMA_FIELDS,
}
_U55_FIELDS = _FIELDS | {
    "IFM_PRECISION": _IFM_FIELDS | {"scale_mode": (8, 2), "round_mode": (14, 2)},
    "IFM2_PRECISION": _IFM_FIELDS,
    "OFM_PRECISION": _OFM_FIELDS | {"round_mode": (14, 2)},
    "IFM2_BROADCAST": {"axes": (0, 3), "operand_order": (6, 1), "scalar": (7, 1)},
    "ACTIVATION": {"activation_function": (0, 8), "activation_clip_range": (12, 3)},
    "ACC_FORMAT": {"acc_format": (0, 2)},
    "OFM_SCALE": {"shift": (0, 6)},
    "OPA_SCALE": {"shift": (0, 6)},
}
_U85_FIELDS = _FIELDS | {
    "IFM_PRECISION": _IFM_FIELDS | {"activation_storage": (14, 2)},
    "IFM2_PRECISION": _IFM_FIELDS | {"activation_storage": (14, 2)},
    "OFM_PRECISION": _OFM_FIELDS | {"activation_reverse": (9, 2), "activation_transpose": (11, 3), "activation_storage": (14, 2)},
    "IFM_BROADCAST": {"axes": (0, 3), "scalar": (3, 1)},
    "IFM2_BROADCAST": {"axes": (0, 3), "scalar": (3, 1)},
    "ACC_FORMAT": {"acc_format": (0, 2), "acc_input": (4, 2), "acc_output": (6, 1), "microblock": (8, 3)},
    "ACTIVATION": {"activation_function": (0, 5), "table": (5, 3), "activation_clip_range": (12, 1)},
    "WEIGHT_FORMAT": {"weight_format": (0, 1), "weight_sparsity": (4, 1)},
    "OFM_SCALE": {"shift": (0, 6), "dbl_rnd": (6, 5), "round_mode": (13, 3)},
    "IFM_SCALE": {"shift": (0, 6), "dbl_rnd": (6, 5), "round_mode": (13, 1)},
    "IFM2_SCALE": {"shift": (0, 6), "dbl_rnd": (6, 5), "round_mode": (13, 1)},
    "DMA0_SRC_REGION": _DMA_FIELDS | {"idx_mode": (11, 1)},
    "DMA0_DST_REGION": _DMA_FIELDS | {"idx_mode": (11, 1)},
    "DMA0_IDX_REGION": {"region": (0, 3)},
    "OP_BRANCH": {"branch_cond": (0, 1)},
    **{f"RESIZE_{axis}": {"one_step_int": (0, 4), "blk_step_int": (4, 11)} for axis in "XY"},
    **{f"RESIZE_{axis}_OFFSET": {f"resize_{axis.lower()}_offset": (0, 12)} for axis in "XY"},
}

#: Product -> the fields of its registers.
FIELDS: dict[str, Fields] = {"ethos-u55": _U55_FIELDS, "ethos-u65": _U55_FIELDS, "ethos-u85": _U85_FIELDS}

#: The numbers of the products in the driver's header.
PRODUCTS = {0: "ethos-u55", 1: "ethos-u65", 2: "ethos-u85"}
