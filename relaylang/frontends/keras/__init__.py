"""Keras: whole models in `.h5` and `.keras` files become Relay programs. Keras itself is not needed."""

from __future__ import annotations

from relaylang.frontends.keras.importer import import_keras

__all__ = ["import_keras"]
