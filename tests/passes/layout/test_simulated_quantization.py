"""ConvertLayout: simulated quantization takes its data's layout."""

from __future__ import annotations

from relaylang.transform import (
    ConvertLayout,
)
from tests.passes.texts import module, same


def test_simulated_quantization_takes_the_layout_of_its_data() -> None:
    head = """def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(8, 8, 3, 3), float32], %s: float32, %a: float32, %b: float32) {
        """
    conv = "nn.conv2d({}, {}, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]{})"
    simulated = "relay.op.annotation.simulated_quantize({}, %s, %a, %b, kind=1)"
    before = head + f"nn.relu({simulated.format(conv.format('%x', '%w', ''))}) }}"
    layouts = ', data_layout="NHWC", kernel_layout="OHWI"'
    after = (
        head
        + f"""%0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
        %1 = layout_transform(%w, src_layout="OIHW", dst_layout="OHWI");
        %2 = nn.relu({simulated.format(conv.format("%0", "%1", layouts))});
        layout_transform(%2, src_layout="NHWC", dst_layout="NCHW") }}"""
    )
    assert same(ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]})(module(before)), after)
