"""The rows of one factor, the other held, each solved to the end.

Under the L1 loss each is a linear program,

    min_a  sum_j weight_j |x_j - sum_k a_k h_kj| + sum_k cost_k a_k,   low <= a <= high,  low >= 0

through its dual, which has as many constraints as there are parts:

    max_pi  x' pi - (high - low)' rho,   H pi - rho <= cost,  |pi| <= weight,  rho >= 0   (x less what `low` makes).

Under least squares an active-set method finds the minimum, and is needed where the parts that are held are nearly
dependent: there coordinate descent gains less and less long before it is at the end.
"""

from __future__ import annotations

import numpy as np
import scipy
from scipy.linalg import cholesky, qr, solve_triangular

from .. import kernels
from ..kernels.records import Box, Others, Rows
from ..problem import Factors, Problem, Quadratic
from ..run import interrupts

WORTH = 1e-9  # of its objective: what a row must gain, since linear programs are solved to about that
# the smallest eigenvalue of the Gram matrix of the parts, scaled to length 1: from where on descent by coordinates ends
# within a few times its tolerance, and from where on the normal equations leave half of the digits
DEPENDENT, SQUARED = 0.03, 1e-8
MOST_PARTS = 300  # a row takes up to their number to the power of 3 or 4


def exact_rows(problem: Problem, factors: Factors, mode: int) -> tuple[np.ndarray, float]:
    """The best factor of this mode, and by how much it lowers the objective."""
    data, precise = problem.data.double(), [A.astype(np.float64) for A in factors]
    structure = problem.structures[mode].elementwise
    assert structure is not None
    (factor,), (gained,) = data.map(linear_programs, precise, mode, structure.box(precise[mode]))
    return factor.astype(factors[mode].dtype), gained


def linear_programs(X: Rows, A: np.ndarray, others: Others, box: Box) -> tuple[tuple, tuple]:
    """As row kernels do: the best of these rows, and what that gains."""
    A, B, sums, gained = A.copy(), others.B, others.sums(), 0.0
    lower, upper = (np.broadcast_to(bound, A.shape) for bound in (box.lower, box.upper))
    for i in range(X.n_rows):
        interrupts.check()
        entries = slice(X.indptr[i], X.indptr[i + 1])
        x = X.values[entries].astype(np.float64) * X.scale
        weights = X.weights[entries] if X.weights.size else np.ones(x.size)
        H, zero = B if X.full else B[X.indices[entries]], x == 0
        # all that zeros of X do under a nonnegative model
        cost = X.unlisted * np.maximum(sums - H.sum(axis=0), 0) + weights[zero] @ H[zero] + box.l1
        x, weights, H = x[~zero], weights[~zero], H[~zero]
        free = (lower[i] < upper[i]) & ((weights @ H > cost) | (A[i] > lower[i]))
        if not free.any():
            continue
        rest = x - H[:, ~free] @ A[i, ~free]
        a = solved(rest, weights, H[:, free], cost[free], (lower[i, free], upper[i, free]))
        if a is None:
            continue
        before, after = (weights @ np.abs(rest - H[:, free] @ w) + cost[free] @ w for w in (A[i, free], a))
        if before - after > WORTH * before:
            A[i, free] = a
            gained += before - after
    return (A,), (gained,)


def solved(x, weights, H, cost, bounds) -> np.ndarray | None:
    """The weights; None where the program could not be solved, and the row is left alone."""
    low, high = bounds
    if not x.size:
        return low
    bounded = np.isfinite(high)
    x = x - H @ low
    room = np.eye(len(cost))[:, bounded]
    program = scipy.optimize.linprog(
        np.concatenate([-x, (high - low)[bounded]]),
        A_ub=np.hstack([H.T, -room]),
        b_ub=cost,
        bounds=[*zip(-weights, weights, strict=True), *[(0, None)] * room.shape[1]],
        method="highs",
    )
    if program.status != 0:
        return None
    return np.clip(low - program.ineqlin.marginals, low, high)


def dependent(gram: np.ndarray, limit: float = DEPENDENT) -> bool:
    """Whether parts with this Gram matrix are nearly dependent: with parts scaled to length 1 its smallest eigenvalue
    is below the limit, or a part is 0."""
    lengths = np.sqrt(np.diag(gram).astype(np.float64))
    return not lengths.all() or bool(np.linalg.eigvalsh(gram / np.outer(lengths, lengths))[0] < limit)


def least_squares_rows(problem: Problem, factors: Factors, mode: int, known: Quadratic, rows: np.ndarray) -> np.ndarray:
    """The factor of this mode with the given rows at their minimum; as it is where its parts are independent enough, or
    where bounds and penalties are not all there is to its structure."""
    A, structure = factors[mode], problem.structures[mode].elementwise
    if structure is None or structure.binary or problem.rank > MOST_PARTS or not isinstance(A, np.ndarray):
        return A
    if structure.l1 > 0 and not structure.nonnegative:
        return A
    if not rows.size or not dependent(known.gram):
        return A
    if not dependent(known.gram, SQUARED) and A.dtype == np.float64:
        R = cholesky(known.gram)
        C = solve_triangular(R, known.cross.T, trans=1).T
    else:
        # the ridge is rows more under the parts, where X has zeros
        problem, precise = problem.in_double(factors)
        B, *more = (F for other, F in enumerate(precise) if other != mode)
        if more:  # of a tensor only products with factors are to be had
            return A
        Q, R = qr(np.vstack([B, np.sqrt(structure.l2) * np.eye(problem.rank)]), mode="economic")
        C = problem.data.cross([np.ascontiguousarray(Q[: len(B)])] * len(factors), mode)
    box = structure.box(A.astype(np.float64))
    return kernels.of(A).least_squares(np.ascontiguousarray(R.T), np.ascontiguousarray(C), A, box, rows)
