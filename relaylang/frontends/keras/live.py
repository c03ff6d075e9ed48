"""A model object of Keras: its configuration and weights, by its own methods. Keras itself is not imported."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

from relaylang.frontends.common.files import damaged
from relaylang.frontends.keras.reader import Array, Model, give
from relaylang.frontends.keras.spec import Path, model_spec
from relaylang.runtime.budget import Budget


def is_live(model: Any) -> bool:
    """Whether an object has the methods of a model of Keras."""
    return not isinstance(model, type) and all(hasattr(model, name) for name in ("get_config", "get_weights", "layers"))


def live_model(model: Any, file: str, budget: Budget) -> Model:
    """The network of a model object. Raises `RelayError`."""
    try:
        config = model.get_config()
    except Exception:  # Subclasses of Model have no configuration.
        raise damaged(file, "the model has no configuration", "Sequential and functional models have one") from None
    package = sys.modules.get(type(model).__module__.partition(".")[0])
    version = getattr(package, "__version__", "3") if package is not None else "3"
    kind = type(model).__name__ if "input_layers" not in config else "Functional"
    # The version of TensorFlow counts for models of the Keras inside it.
    version = version if type(model).__module__.startswith(("keras", "tf_keras")) else "2"
    version = "2" if type(model).__module__.startswith("tf_keras") else version
    spec = model_spec({"class_name": kind, "config": config}, version, file)
    weights: dict[Path, list[Array]] = {}
    objects = {layer.name: layer for layer in model.layers}
    for path, layer in spec.layers():
        if layer.name in objects:
            arrays = _arrays(objects[layer.name])
            budget.grant(sum(a.nbytes for a in arrays))
            give(weights, path, layer, [partial(np.asarray, a) for a in arrays], file)
    return Model(spec, lambda path, of: weights.get(path, []))


def _arrays(layer: Any) -> list[np.ndarray]:
    """The weights of a layer: trainable ones first."""
    if hasattr(layer, "trainable_weights") and hasattr(layer, "non_trainable_weights"):
        weights = [*layer.trainable_weights, *layer.non_trainable_weights]
        if all(hasattr(w, "numpy") for w in weights):
            return [np.asarray(w.numpy()) for w in weights]
    return [np.asarray(w) for w in layer.get_weights()]


__all__ = ["is_live", "live_model"]
