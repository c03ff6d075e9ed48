"""Examples of operators that are written by hand, because trying types and attributes does not find one."""

from __future__ import annotations

from typing import Any

#: Calls that need more than types: the parameters of a function, and the call.
WRITTEN: dict[str, tuple[str, str]] = {
    "nn.batch_norm": (
        "%x: Tensor[(1, 3, 8, 8), float32], %gamma: Tensor[(3), float32], %beta: Tensor[(3), float32], "
        "%mean: Tensor[(3), float32], %var: Tensor[(3), float32]",
        "nn.batch_norm(%x, %gamma, %beta, %mean, %var)",
    ),
    "nn.instance_norm": (
        "%x: Tensor[(1, 3, 8, 8), float32], %gamma: Tensor[(3), float32], %beta: Tensor[(3), float32]",
        "nn.instance_norm(%x, %gamma, %beta)",
    ),
    "nn.group_norm": (
        "%x: Tensor[(1, 4, 8, 8), float32], %gamma: Tensor[(4), float32], %beta: Tensor[(4), float32]",
        "nn.group_norm(%x, %gamma, %beta, num_groups=2)",
    ),
    "nn.nll_loss": (
        "%x: Tensor[(2, 3), float32], %targets: Tensor[(2), int32], %weights: Tensor[(3), float32]",
        'nn.nll_loss(%x, %targets, %weights, reduction="mean", ignore_index=-100)',
    ),
    "qnn.batch_matmul": (
        "%x: Tensor[(1, 2, 3), int8], %y: Tensor[(1, 3, 4), int8]",
        'qnn.batch_matmul(%x, %y, 0, 0, 0.5f, 0.5f, out_dtype="int32")',
    ),
    "qnn.concatenate": (
        "%x: Tensor[(2, 3), int8], %y: Tensor[(2, 3), int8]",
        "qnn.concatenate((%x, %y), (0.5f, 0.25f), (0, 0), 0.5f, 0, axis=0)",
    ),
    "image.resize1d": ("%x: Tensor[(1, 3, 8), float32]", 'image.resize1d(%x, size=[16], layout="NCW", roi=[0f, 0f])'),
    "image.resize2d": ("%x: Tensor[(1, 3, 8, 8), float32]", "image.resize2d(%x, size=[16, 16], roi=[0f, 0f, 0f, 0f])"),
    "image.resize3d": (
        "%x: Tensor[(1, 3, 4, 8, 8), float32]",
        'image.resize3d(%x, size=[8, 16, 16], layout="NCDHW", roi=[0f, 0f, 0f, 0f, 0f, 0f])',
    ),
    "image.crop_and_resize": (
        "%x: Tensor[(1, 8, 8, 3), float32], %boxes: Tensor[(2, 4), float32], %indices: Tensor[(2), int32]",
        'image.crop_and_resize(%x, %boxes, %indices, crop_size=[4, 4], layout="NHWC", method="bilinear")',
    ),
    "image.affine_grid": ("%x: Tensor[(1, 2, 3), float32]", "image.affine_grid(%x, target_shape=[8, 8])"),
    "vision.non_max_suppression": (
        "%x: Tensor[(1, 10, 6), float32], %count: Tensor[(1), int32], %indices: Tensor[(1, 10), int32]",
        "vision.non_max_suppression(%x, %count, %indices, 10, 0.5f)",
    ),
    "random.uniform": (
        "%key: Tensor[(10), uint64]",
        'random.uniform(%key, 0f, 1f, out_shape=[2, 3], out_dtype="float32")',
    ),
    "random.normal": (
        "%key: Tensor[(10), uint64]",
        'random.normal(%key, 0f, 1f, out_shape=[2, 3], out_dtype="float32")',
    ),
    "scatter_nd": (
        "%x: Tensor[(4), float32], %indices: Tensor[(1, 2), int32], %updates: Tensor[(2), float32]",
        'scatter_nd(%x, %indices, %updates, mode="add")',
    ),
    "einsum": (
        "%x: Tensor[(2, 3), float32], %y: Tensor[(3, 4), float32]",
        'einsum((%x, %y), equation="ij,jk->ik")',
    ),
    "stft": (
        "%x: Tensor[(1, 16), float32], %window: Tensor[(8), float32]",
        "stft(%x, %window, n_fft=8, hop_length=4, win_length=8, normalized=False, onesided=True)",
    ),
    "dyn.sparse_to_dense": (
        "%indices: Tensor[(2, 1), int64], %shape: Tensor[(1), int64], %values: Tensor[(2), float32], %other: float32",
        "dyn.sparse_to_dense(%indices, %values, %other, %shape)",
    ),
    "auto_scheduler_layout_transform": (
        "%x: Tensor[(1, 16, 8, 8), float32]",
        'auto_scheduler_layout_transform(%x, src_layout="1N16C8H8W", dst_layout="1N8H8W16c")',
    ),
    "nn.conv2d_backward_weight": (
        "%grad: Tensor[(1, 4, 6, 6), float32], %x: Tensor[(1, 3, 8, 8), float32]",
        'nn.conv2d_backward_weight(%grad, %x, channels=4, kernel_size=[3, 3], kernel_layout="NCHW", out_layout="OIHW")',
    ),
    "nn.bitpack": (
        "%x: Tensor[(1, 32, 8, 8), int32]",
        'nn.bitpack(%x, bits=2, pack_axis=1, bit_axis=4, pack_type="uint32")',
    ),
    "nn.bitserial_conv2d": (
        "%x: Tensor[(1, 32, 8, 8), int32], %w: Tensor[(4, 32, 3, 3), int32]",
        'nn.bitserial_conv2d(%x, %w, channels=4, kernel_size=[3, 3], activation_bits=2, pack_dtype="uint32", out_dtype="int32")',
    ),
    "nn.contrib_conv2d_winograd_without_weight_transform": (
        "%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(6, 6, 3, 4), float32]",
        "nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=4, channels=4, kernel_size=[3, 3])",
    ),
    "nn.contrib_conv2d_NCHWc": (
        "%x: Tensor[(1, 1, 8, 8, 4), float32], %w: Tensor[(2, 1, 3, 3, 4, 4), float32]",
        "nn.contrib_conv2d_NCHWc(%x, %w, channels=8, kernel_size=[3, 3], "
        'data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="NCHW4c")',
    ),
    "nn.contrib_depthwise_conv2d_NCHWc": (
        "%x: Tensor[(1, 2, 8, 8, 4), float32], %w: Tensor[(2, 1, 3, 3, 1, 4), float32]",
        "nn.contrib_depthwise_conv2d_NCHWc(%x, %w, groups=8, channels=8, kernel_size=[3, 3], "
        'data_layout="NCHW4c", kernel_layout="OIHW1i4o", out_layout="NCHW4c")',
    ),
    "nn.contrib_conv2d_gemm_without_weight_transform": (
        "%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(1, 7, 4, 4), float32]",
        "nn.contrib_conv2d_gemm_without_weight_transform("
        '%x, %w, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")',
    ),
    "nn.contrib_conv3d_winograd_without_weight_transform": (
        "%x: Tensor[(1, 3, 8, 8, 8), float32], %w: Tensor[(6, 6, 6, 3, 4), float32]",
        "nn.contrib_conv3d_winograd_without_weight_transform(%x, %w, tile_size=4, channels=4, kernel_size=[3, 3, 3])",
    ),
    "qnn.contrib_dense_pack": (
        "%x: Tensor[(2, 8), uint8], %w: Tensor[(1, 2, 4, 4), int8]",
        'qnn.contrib_dense_pack(%x, %w, 0, 0, 0.5f, 0.5f, units=4, out_dtype="int32")',
    ),
    "nn.deformable_conv2d": (
        "%x: Tensor[(1, 3, 8, 8), float32], %offset: Tensor[(1, 18, 6, 6), float32], %w: Tensor[(4, 3, 3, 3), float32]",
        "nn.deformable_conv2d(%x, %offset, %w, channels=4, kernel_size=[3, 3])",
    ),
    "qnn.conv2d_transpose": (
        "%x: Tensor[(1, 3, 8, 8), int8], %w: Tensor[(3, 4, 3, 3), int8]",
        'qnn.conv2d_transpose(%x, %w, 0, 0, 0.5f, 0.5f, channels=4, kernel_size=[3, 3], kernel_layout="IOHW", out_dtype="int32")',
    ),
    "vision.multibox_transform_loc": (
        "%classes: Tensor[(1, 3, 5), float32], %boxes: Tensor[(1, 20), float32], %anchors: Tensor[(1, 5, 4), float32]",
        "vision.multibox_transform_loc(%classes, %boxes, %anchors)",
    ),
    "vision.proposal": (
        "%classes: Tensor[(1, 24, 8, 8), float32], %boxes: Tensor[(1, 48, 8, 8), float32], %info: Tensor[(1, 3), float32]",
        "vision.proposal(%classes, %boxes, %info, rpn_post_nms_top_n=10)",
    ),
    "fixed_point_multiply_per_axis": (
        "%x: Tensor[(2, 3), int32], %m: Tensor[(3), int32], %l: Tensor[(3), int32], %r: Tensor[(3), int32]",
        "fixed_point_multiply_per_axis(%x, %m, %l, %r, is_lshift_required=True, is_rshift_required=True, "
        "axes=[1])",
    ),
    "matrix_set_diag": (
        "%x: Tensor[(3, 3), float32], %diagonal: Tensor[(3), float32]",
        "matrix_set_diag(%x, %diagonal, k1=0, k2=0)",
    ),
    "nn.max_pool2d_grad": (
        "%grad: Tensor[(1, 3, 4, 4), float32], %x: Tensor[(1, 3, 8, 8), float32]",
        "nn.max_pool2d_grad(%grad, %x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])",
    ),
    "nn.avg_pool2d_grad": (
        "%grad: Tensor[(1, 3, 4, 4), float32], %x: Tensor[(1, 3, 8, 8), float32]",
        "nn.avg_pool2d_grad(%grad, %x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])",
    ),
    "nn.sparse_add": (
        "%x: Tensor[(3, 4), float32], %data: Tensor[(2), float32], %indices: Tensor[(2), int32], "
        "%indptr: Tensor[(4), int32]",
        "nn.sparse_add(%x, %data, %indices, %indptr)",
    ),
    "nn.contrib_dense_pack": (
        "%x: Tensor[(2, 8), float32], %w: Tensor[(1, 8, 4), float32]",
        'nn.contrib_dense_pack(%x, %w, units=4, weight_layout="NC4n")',
    ),
    "qnn.simulated_quantize": (
        "%x: Tensor[(2, 3), float32]",
        "qnn.simulated_quantize(%x, 1, 0.5f, 0)",
    ),
    "qnn.simulated_dequantize": (
        "%x: Tensor[(2, 3), float32]",
        'qnn.simulated_dequantize(%x, 1, 0.5f, 0, out_dtype="float32")',
    ),
    "image.dilation2d": (
        "%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(3, 3, 3), float32]",
        "image.dilation2d(%x, %w, strides=[1, 1], dilations=[1, 1])",
    ),
    "image.grid_sample": (
        "%x: Tensor[(1, 3, 8, 8), float32], %grid: Tensor[(1, 2, 4, 4), float32]",
        "image.grid_sample(%x, %grid)",
    ),
    "vision.all_class_non_max_suppression": (
        "%boxes: Tensor[(1, 10, 4), float32], %scores: Tensor[(1, 2, 10), float32]",
        "vision.all_class_non_max_suppression(%boxes, %scores, 5i64, 0.5f, 0.1f)",
    ),
    "vision.regular_non_max_suppression": (
        "%boxes: Tensor[(1, 10, 4), float32], %scores: Tensor[(1, 10, 2), float32]",
        "vision.regular_non_max_suppression(%boxes, %scores, max_detections_per_class=5, max_detections=5, "
        "num_classes=2, iou_threshold=0.5f, score_threshold=0.1f)",
    ),
    "dyn.strided_slice": (
        "%x: Tensor[(4, 6), float32], %begin: Tensor[(2), int64], %end: Tensor[(2), int64], "
        "%strides: Tensor[(2), int64]",
        "dyn.strided_slice(%x, %begin, %end, %strides, begin=None, end=None, strides=None, axes=None)",
    ),
    "dyn.nn.pad": (
        "%x: Tensor[(2, 3), float32], %width: Tensor[(2, 2), int64]",
        "dyn.nn.pad(%x, %width, 0f, pad_width=[])",
    ),
    "dyn.image.resize2d": (
        "%x: Tensor[(1, 3, 8, 8), float32], %size: Tensor[(2), int64], %roi: Tensor[(4), float32]",
        "dyn.image.resize2d(%x, %size, %roi)",
    ),
    "random.multinomial": (
        "%key: Tensor[(10), uint64], %probabilities: Tensor[(4), float32], %indices: Tensor[(3), int32]",
        "random.multinomial(%key, %probabilities, num_samples=3)",
    ),
    "sparse_fill_empty_rows": (
        "%indices: Tensor[(2, 2), int64], %values: Tensor[(2), float32], %shape: Tensor[(2), int64]",
        "sparse_fill_empty_rows(%indices, %values, %shape, 0f)",
    ),
    "sparse_reshape": (
        "%indices: Tensor[(5, 3), int64], %shape: Tensor[(3), int64], %new: Tensor[(2), int64]",
        "sparse_reshape(%indices, %shape, %new)",
    ),
    "relay.op.annotation.simulated_quantize": (
        "%x: Tensor[(2, 3), float32]",
        "relay.op.annotation.simulated_quantize(%x, 0.5f, -127f, 127f, kind=1)",
    ),
    "vm.invoke_tvm_op": (
        "%x: Tensor[(2, 3), float32], %out: Tensor[(2, 3), float32]",
        "vm.invoke_tvm_op(fn (%a: Tensor[(2, 3), float32]) { exp(%a) }, (%x,), (%out,))",
    ),
    "call_lowered": (
        "%x: Tensor[(2, 3), float32]",
        "call_lowered(fn (%a: Tensor[(2, 3), float32]) { exp(%a) }, (%x,))",
    ),
}

#: Calls that need definitions around them: the module's text, whose `@main` makes the result.
MODULES: dict[str, str] = {
    "memory.alloc_storage": """\
type Storage {}
def @main(%size: int64, %shape: Tensor[(2), int64]) {
  memory.alloc_storage(%size, %shape, 64i64, dtype="float32")
}""",
    "memory.alloc_tensor": """\
type Storage {}
def @main(%storage: Storage[], %shape: Tensor[(2), int64]) {
  memory.alloc_tensor(%storage, 0i64, %shape, dtype="float32", assert_shape=[2, 3])
}""",
}

#: Calls that no text can hold: what Python says, and what makes the call of that.
PYTHON: dict[str, tuple[str, dict[str, Any]]] = {
    "meta_schedule_layout_transform": (
        """\
op = OPS["meta_schedule_layout_transform"]
Call(op, [var("x", shape=(2, 3))], make_attrs(op.attrs, {"index_map": lambda i, j: (j, i)}))""",
        {"index_map": lambda i, j: (j, i)},
    ),
}
