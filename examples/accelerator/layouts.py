"""Step 3, the layouts: mac8 reads vectors of 8 numbers and tiles of 8 x 8 weights."""

import numpy as np

BLOCK = 8


def blocks(count):
    """How many blocks hold so many numbers."""
    return -(-count // BLOCK)


def pack(x):
    """Rows (N, C) as vectors (N, blocks, 8), zeros at the end."""
    padded = np.zeros((len(x), blocks(x.shape[1]) * BLOCK), np.int8)
    padded[:, : x.shape[1]] = x
    return padded.reshape(len(x), -1, BLOCK)


def unpack(vectors, channels):
    """The rows (N, C) of such vectors."""
    return vectors.reshape(len(vectors), -1)[:, :channels]


def pack_weights(w):
    """Weights (O, I) as tiles (O/8, I/8, 8, 8)."""
    padded = np.zeros((blocks(w.shape[0]) * BLOCK, blocks(w.shape[1]) * BLOCK), np.int8)
    padded[: w.shape[0], : w.shape[1]] = w
    return padded.reshape(blocks(w.shape[0]), BLOCK, blocks(w.shape[1]), BLOCK).transpose(0, 2, 1, 3)
