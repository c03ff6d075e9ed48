"""Configurations of Keras 1 in the words of Keras 2."""

from __future__ import annotations

from typing import Any

#: Class names of old versions.
_CLASSES = {
    "Convolution1D": "Conv1D",
    "Convolution2D": "Conv2D",
    "Convolution3D": "Conv3D",
    "Deconvolution2D": "Conv2DTranspose",
    "SeparableConvolution2D": "SeparableConv2D",
    "Deconvolution3D": "Conv3DTranspose",
    "Convolution2DTranspose": "Conv2DTranspose",
    "Convolution3DTranspose": "Conv3DTranspose",
    "CuDNNGRU": "GRU",
    "CuDNNLSTM": "LSTM",
    "BatchNormalizationV1": "BatchNormalization",
    "BatchNormalizationV2": "BatchNormalization",
    "SyncBatchNormalization": "BatchNormalization",
    "GRUV2": "GRU",
    "GroupQueryAttention": "GroupedQueryAttention",
    "LSTMV2": "LSTM",
    "MaxPool1D": "MaxPooling1D",
    "MaxPool2D": "MaxPooling2D",
    "MaxPool3D": "MaxPooling3D",
    "AvgPool1D": "AveragePooling1D",
    "AvgPool2D": "AveragePooling2D",
    "AvgPool3D": "AveragePooling3D",
    "GlobalAvgPool1D": "GlobalAveragePooling1D",
    "GlobalAvgPool2D": "GlobalAveragePooling2D",
    "GlobalAvgPool3D": "GlobalAveragePooling3D",
    "GlobalMaxPool1D": "GlobalMaxPooling1D",
    "GlobalMaxPool2D": "GlobalMaxPooling2D",
    "GlobalMaxPool3D": "GlobalMaxPooling3D",
}
#: Keras 1's names of what Keras 2 names otherwise.
_NAMES = {
    "border_mode": "padding",
    "subsample": "strides",
    "nb_filter": "filters",
    "bias": "use_bias",
    "p": "rate",
    "inner_activation": "recurrent_activation",
    "dim_ordering": "data_format",
    "pool_length": "pool_size",
    "stride": "strides",
    "subsample_length": "strides",
    "filter_length": "kernel_size",
    "atrous_rate": "dilation_rate",
    "length": "size",
}
#: The extents of a kernel, one by one.
_SIDES = ("nb_row", "nb_col", "kernel_dim1", "kernel_dim2", "kernel_dim3")
_FORMATS = {"tf": "channels_last", "th": "channels_first"}
_MERGES = {
    "sum": "Add",
    "mul": "Multiply",
    "concat": "Concatenate",
    "ave": "Average",
    "max": "Maximum",
    "min": "Minimum",
    "dot": "Dot",
}


def upgraded(kind: str, config: dict[str, Any], major: int) -> tuple[str, dict[str, Any]]:
    """The class and the configuration in the words of Keras 2 and 3."""
    if kind.startswith("CuDNN"):
        config = {"reset_after": True, "recurrent_activation": "sigmoid", **config}
    kind = _CLASSES.get(kind, kind)
    if major != 1:
        return kind, config
    if kind == "Merge" and isinstance(config.get("mode"), str):
        merged = {"axis": config.get("concat_axis", -1), "axes": config.get("dot_axes", -1)}
        return _MERGES.get(config["mode"], kind), {**config, **merged}
    renamed = {_NAMES.get(k, k): v for k, v in config.items() if k not in _SIDES}
    sides = [config[k] for k in _SIDES if k in config]
    if sides:
        renamed["kernel_size"] = sides
    if kind in ("Dense", "GRU", "LSTM", "SimpleRNN") and "output_dim" in config:
        renamed["units"] = config["output_dim"]
    if kind == "GRU":
        renamed["reset_after"] = False
    if isinstance(config.get("dim_ordering"), str):
        renamed["data_format"] = _FORMATS.get(config["dim_ordering"], config["dim_ordering"])
    if kind == "BatchNormalization" and "mode" in config:
        renamed.setdefault("axis", -1)
    if kind == "UpSampling1D" and "length" in config:
        renamed["size"] = config["length"]
    return kind, renamed


__all__ = ["upgraded"]
