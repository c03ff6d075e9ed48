"""A function for AlterOpLayout that both sides run as it stands: convolutions with their channels in blocks.

TVM's Python imports this file too, so it imports nothing; `relay` is `tvm.relay` there and `relaylang` here.
"""


def in_blocks(relay, most):
    """The registered function of nn.conv2d: blocks of at most `most` channels, the largest that divide them."""

    def largest(extent, limit):
        return next(n for n in range(min(extent, limit), 0, -1) if extent % n == 0)

    def alter(attrs, inputs, tinfos, out_type):
        if attrs["data_layout"] != "NCHW" or attrs["kernel_layout"] != "OIHW":
            return None
        channels, made, groups = int(tinfos[0].shape[1]), int(tinfos[1].shape[0]), int(attrs["groups"])
        new = {name: attrs[name] for name in attrs.keys()}
        out = largest(made, most)
        of = largest(channels, out)
        new.update(channels=made, data_layout=f"NCHW{of}c", kernel_layout=f"OIHW{of}i{out}o", out_layout=f"NCHW{out}c")
        if groups == 1:
            return relay.nn.contrib_conv2d_nchwc(*inputs, **new)
        if groups == channels == made:
            new.update(kernel_layout=f"OIHW1i{out}o")
            return relay.nn.contrib_depthwise_conv2d_nchwc(*inputs, **new)
        return None

    return alter
