"""The best nonnegative weights of given parts: step 2 of the greedy method (Huang and Zhang 2015)."""

from __future__ import annotations

import numpy as np

from .. import kernels
from ..data.units import root
from ..problem import Factors, Problem, gram_of
from ..problem.parts import part_products

SWEEPS = 500  # of coordinate descent, at most
ENOUGH = 1e-14  # of what the first sweep moved, squared: where it ends
PASSES = 50  # over the rows of the full weights, at most


def weighted(problem: Problem, factors: Factors) -> Factors:
    """One weight a part: `min |X - sum_k w_k T_k|` over w >= 0, T_k the parts, shared evenly by all factors."""
    A = factors[0].astype(np.float64)
    linear = np.einsum("ik,ik->k", A, problem.data.cross(factors, 0))
    w = nonnegative(np.ones((1, A.shape[1])), linear[None], part_products(problem, factors))[0]
    return tuple(factor * root(w, len(factors)).astype(factor.dtype) for factor in factors)


def mixed(problem: Problem, factors: Factors) -> Factors:
    """A weight for every pair of a column of A and one of B: `min |X - A W B'|` over W >= 0, (rank, rank); the new
    factors are A and `B W'`. Row by row, each to its best. Of matrices only."""
    A, B = (factor.astype(np.float64) for factor in factors)
    left, right, target = gram_of(A), gram_of(B), A.T @ problem.data.cross(factors, 0)
    W = np.eye(A.shape[1])
    for _ in range(PASSES):
        before = W.copy()
        for i in range(len(W)):
            others = left[i] @ W - left[i, i] * W[i]
            W[[i]] = nonnegative(W[[i]], target[[i]] - others[None] @ right, left[i, i] * right)
        if np.abs(W - before).max() <= 1e-9 * np.abs(W).max(initial=1.0):
            break
    return factors[0], (B @ W.T).astype(factors[1].dtype)


def nonnegative(w: np.ndarray, linear: np.ndarray, grams: np.ndarray) -> np.ndarray:
    """The minimiser of `1/2 w grams w' - linear w'` over w >= 0, from w, (1, rank)."""
    box = 0.0, np.zeros((1, w.shape[1])), np.full((1, w.shape[1]), np.inf)
    order, rows = np.arange(w.shape[1]), np.arange(1)
    return kernels.of(w).hals(w, linear, np.ascontiguousarray(grams), box, order, (SWEEPS, ENOUGH), rows)[0]
