"""Measures of parts."""

from __future__ import annotations

import numpy as np


def sparsity(parts) -> np.ndarray:
    """Hoyer's sparsity of each row of `parts`, such as `result.H`: 0 for a flat row of n entries, 1 for one nonzero,

        (sqrt(n) - |a|_1 / |a|_2) / (sqrt(n) - 1)

    (Hoyer 2004). NaN for rows of zeros, and where n is 1.
    """
    A = np.abs(np.atleast_2d(np.asarray(parts, dtype=np.float64)))
    largest = A.max(axis=1, keepdims=True)
    A = np.divide(A, largest, out=np.zeros_like(A), where=largest > 0)  # or squares of tiny numbers vanish
    root = np.sqrt(A.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return (root - A.sum(axis=1) / np.linalg.norm(A, axis=1)) / (root - 1)
