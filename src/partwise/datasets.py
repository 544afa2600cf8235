"""Data to try things on, generated here or carried by scikit-learn."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state


def local_archive(name: str) -> Path | None:
    """A data set that cannot be passed on, such as "classic3": the file `classic3.npz` in the folder that the
    environment variable PARTWISE_DATA names, or in `shared/data` beside the repository; None where there is none."""
    folder = Path(os.environ.get("PARTWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = folder / f"{name}.npz"
    return path if path.is_file() else None


class Parts(NamedTuple):
    """Data with the parts it is made of: `X = W @ H` (plus noise where asked for)."""

    X: np.ndarray
    W: np.ndarray
    H: np.ndarray
    image_shape: tuple[int, int] | None


def make_swimmer() -> Parts:
    """The 256 Swimmer images (Donoho and Stodden 2003), 32 x 32: a torso and four limbs in four positions each.

    16 limbs of 5 pixels and a torso of 17; each image is the torso and one position of each limb. H holds the 17
    parts, the torso last, W the 0/1 choice.
    """
    directions = {  # quadrant: the four ways a limb can point, as (row, column) steps
        (-1, -1): [(-1, 0), (-1, -1), (0, -1), (1, -1)],
        (-1, 1): [(-1, 0), (-1, 1), (0, 1), (1, 1)],
        (1, -1): [(1, 0), (1, -1), (0, -1), (-1, -1)],
        (1, 1): [(1, 0), (1, 1), (0, 1), (-1, 1)],
    }
    top, bottom, column = 7, 23, 16
    parts = []
    for (vertical, side), steps in directions.items():
        row = top + 1 if vertical < 0 else bottom - 1
        for step in steps:
            image = np.zeros((32, 32))
            for length in range(1, 6):
                image[row + length * step[0], column + side + length * step[1]] = 1
            parts.append(image.ravel())
    torso = np.zeros((32, 32))
    torso[top : bottom + 1, column] = 1
    H = np.array([*parts, torso.ravel()])
    W = np.array([[*np.eye(4)[list(pose)].ravel(), 1.0] for pose in product(range(4), repeat=4)])
    return Parts(W @ H, W, H, (32, 32))


def make_parts(n_samples=100, n_features=80, rank=5, *, zeros=0.5, noise=0.0, outliers=0.0, random_state=None) -> Parts:
    """A planted factorization: uniform W and H with a share of `zeros`, normal noise of relative size `noise` on X, cut
    at 0, and a share of `outliers` among its entries, anything up to five times the largest."""
    rng = check_random_state(random_state)
    W, H = (
        rng.uniform(size=shape) * (rng.uniform(size=shape) >= zeros)
        for shape in ((n_samples, rank), (rank, n_features))
    )
    X = W @ H
    if noise:
        deviation = rng.standard_normal(X.shape)
        X = np.maximum(X + noise * np.linalg.norm(X) / np.linalg.norm(deviation) * deviation, 0)
    if outliers:
        X = np.where(rng.uniform(size=X.shape) < outliers, 5 * X.max() * rng.uniform(size=X.shape), X)
    return Parts(X, W, H, None)


def make_binary_parts(n_samples=100, n_features=80, rank=5, *, share=0.1, flips=0.0, random_state=None) -> Parts:
    """0/1 parts that overlap a little: W and H with a `share` of ones, X their Boolean product, where a share of
    `flips` is wrong."""
    rng = check_random_state(random_state)
    W, H = (rng.uniform(size=shape) < share for shape in ((n_samples, rank), (rank, n_features)))
    X = (W.astype(np.float64) @ H > 0) ^ (rng.uniform(size=(n_samples, n_features)) < flips)
    return Parts(X.astype(np.float64), W.astype(np.float64), H.astype(np.float64), None)


def make_sparse_codes(n_samples=300, n_features=20, rank=30, *, nonzeros=3, noise=0.0, random_state=None) -> Parts:
    """Sparse combinations of random atoms: H normal with rows of norm 1, W with `nonzeros` normal entries in each row,
    at random places, normal noise of relative size `noise` on X."""
    rng = check_random_state(random_state)
    H = rng.standard_normal((rank, n_features))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    places = np.argsort(rng.uniform(size=(n_samples, rank)), axis=1)[:, :nonzeros]
    W = np.zeros((n_samples, rank))
    np.put_along_axis(W, places, rng.standard_normal(places.shape), axis=1)
    X = W @ H
    deviation = rng.standard_normal(X.shape)
    return Parts(X + noise * np.linalg.norm(X) / np.linalg.norm(deviation) * deviation, W, H, None)


def load_digits() -> Parts:
    """The 1797 handwritten digits, 8 x 8, that scikit-learn carries; W and H are empty, the parts are unknown."""
    from sklearn.datasets import load_digits as load  # noqa: PLC0415  # slow to import

    X = load().data
    return Parts(X, np.empty((len(X), 0)), np.empty((0, X.shape[1])), (8, 8))
