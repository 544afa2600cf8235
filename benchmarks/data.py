"""The data sets of the benchmarks. Those that are not generated lie in a folder named by PARTWISE_DATA, or in
`shared/data` beside the repository."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from partwise.datasets import local_archive, make_parts

from .scale import QUICK


class Absent(Exception):
    """The data set is not on this machine."""


def archive(name: str):
    path = local_archive(name)
    if path is None:
        raise Absent(f"{name}.npz is not here (set PARTWISE_DATA to the folder that holds it)")
    return path


def few(X):
    """All of X, or for a quick trial some rows and columns that are not empty."""
    if not QUICK:
        return X
    if not sparse.issparse(X):
        return X[:80]
    X = X[:300]
    X = X[:, np.flatnonzero(X.sum(axis=0) > 0)[:400]]
    return sparse.csr_array(X[np.flatnonzero(X.sum(axis=1) > 0)])


def images(name: str, dtype=np.float64) -> np.ndarray:
    """Pixels / 255, an image a row."""
    with np.load(archive(name)) as file:
        pixels = few(file["images" if "images" in file else "faces"])
    return (pixels.reshape(len(pixels), -1) / 255).astype(dtype)


def prepared(name: str) -> np.ndarray:
    """Faces as Hoyer (2004) takes them after Lee and Seung: each image with mean and deviation 1/4, cut to [0, 1]."""
    X = images(name)
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    return np.clip(0.25 + 0.25 * X, 0, 1)


def sparse_images(name: str) -> sparse.csr_array:
    return sparse.csr_array(images(name))


def stored(name: str) -> sparse.csr_array:
    return few(sparse.csr_array(sparse.load_npz(archive(name))))


def counts(name: str):
    """Counts as they are: words, molecules, or the grey levels of images."""
    with np.load(archive(name)) as file:
        if "faces" in file:
            return few(file["faces"].reshape(len(file["faces"]), -1).astype(np.float64))
    return stored(name).astype(np.float64)


def array(name: str, key: str) -> np.ndarray:
    """One array of an archive, its last dimension across."""
    with np.load(archive(name)) as file:
        X = file[key].astype(np.float64)
    return few(np.maximum(X.reshape(-1, X.shape[-1]), 0))


def power(name: str) -> np.ndarray:
    """A power spectrogram; exact zeros become the smallest other entry."""
    with np.load(archive(name)) as file:
        X = np.square(file["magnitude"].astype(np.float64))
    return np.maximum(X, X[X > 0].min())


def tf_idf(name: str) -> sparse.csr_array:
    """Counts with scikit-learn's default tf-idf weights."""
    counts = stored(name).astype(np.float64)
    return sparse.csr_array(TfidfTransformer().fit_transform(sparse.csr_matrix(counts)))


def planted(rank: int, zeros: float) -> np.ndarray:
    return make_parts(500, 1000, rank, zeros=zeros, random_state=rank).X
