"""Rank-one parts as arrays of the shape of X, where its entries count: their inner products and norms."""

from __future__ import annotations

import numpy as np

from ..data.units import exponent_of
from ..data.validation import OFF_DIAGONAL
from .problem import Factors, Problem, gram_of, hadamard


def counts_diagonal(symmetric: bool | str) -> bool:
    """Whether the diagonal of X counts, by the `symmetric` of a problem or a result."""
    return symmetric != OFF_DIAGONAL


def part_products(problem: Problem, factors: Factors) -> np.ndarray:
    """Inner products of parts, `prod_i (A_i' A_i)[j, k]`, without the diagonal of `A A'` where that does not count."""
    precise = [A.astype(np.float64) for A in factors]
    products = hadamard(map(gram_of, precise))
    if counts_diagonal(problem.symmetric):
        return products
    squares = np.square(precise[0])
    return products - squares.T @ squares


def part_norms(factors: Factors, symmetric: bool | str = False) -> np.ndarray:
    """The norm of each part, `prod_i |A_i[:, k]|`, up to a common power of two; without its diagonal where that does
    not count."""
    factors = [np.ldexp(A, -exponent_of(float(np.abs(A).max(initial=0)))) for A in factors]  # squares are numbers
    if counts_diagonal(symmetric):
        return np.prod([np.linalg.norm(A, axis=0) for A in factors], axis=0)
    squares = np.square(factors[0].astype(np.float64))
    return np.sqrt((squares * np.maximum(squares.sum(axis=0) - squares, 0)).sum(axis=0))
