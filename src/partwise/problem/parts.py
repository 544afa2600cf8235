"""Rank-one parts as arrays of the shape of X, where its entries count: their inner products and norms."""

from __future__ import annotations

import numpy as np

from .. import kernels
from ..data.units import column_norms, exponent_of
from ..data.validation import OFF_DIAGONAL
from ..losses.expansions import gram_of
from .problem import Factors, Problem

NEAR = 8  # exponent of numbers whose squares leave room below them, in single precision too


def diagonal_weight(symmetric: bool | str) -> float:
    """What entries on the diagonal of X count, by the `symmetric` of a problem or a result."""
    return 0.0 if symmetric == OFF_DIAGONAL else 1.0


def part_products(problem: Problem, factors: Factors) -> np.ndarray:
    """Inner products of parts, `prod_i (A_i' A_i)[j, k]`, entries on the diagonal by their weight."""
    precise = [A.astype(np.float64) for A in factors]
    products = np.prod([gram_of(A) for A in precise], axis=0)
    weight = diagonal_weight(problem.symmetric)
    squares = np.square(precise[0])
    return products if weight == 1 else products - (1 - weight) * (squares.T @ squares)


def part_sums(factors: Factors, symmetric: bool | str = False) -> np.ndarray:
    """The sum of the absolute entries of each part, `prod_i |A_i[:, k]|_1`, up to a common power of two, entries on the
    diagonal by their weight."""
    factors = [np.abs(np.ldexp(A, -exponent_of(float(np.abs(A).max(initial=0))))).astype(np.float64) for A in factors]
    sums = np.prod([A.sum(axis=0) for A in factors], axis=0)
    weight = diagonal_weight(symmetric)
    return sums if weight == 1 else np.maximum(sums - (1 - weight) * np.square(factors[0]).sum(axis=0), 0)


def part_norms(factors: Factors, symmetric: bool | str = False) -> np.ndarray:
    """The norm of each part, `prod_i |A_i[:, k]|`, up to a common power of two, entries on the diagonal by their
    weight."""
    weight = diagonal_weight(symmetric)
    if weight == 1:
        values, powers = np.frexp([column_norms(A) for A in factors])
        values, powers = np.prod(values, axis=0), powers.sum(axis=0)
        return np.ldexp(values, powers - max(powers[values > 0], default=0))
    squares = np.square(with_squares(factors[0]).astype(np.float64))
    return np.sqrt((squares * np.maximum(squares.sum(axis=0) - (1 - weight) * squares, 0)).sum(axis=0))


def with_squares(A: np.ndarray) -> np.ndarray:
    """A factor up to a power of two, so that its squares are numbers: the same one where its entries are near 1."""
    top = float(np.max(np.abs(kernels.of(A).column_extremes(A)), initial=0)) if len(A) else 0.0
    exponent = exponent_of(top)
    return A if abs(exponent) <= NEAR else kernels.of(A).ldexp(A, -exponent, A.dtype)
