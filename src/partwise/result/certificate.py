"""What can be said for sure about a result."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh

from .. import kernels
from ..data import Data
from ..data.rows import BLOCK, sparse_matrix
from ..data.spectrum import gram, svd
from ..data.units import times_power, unit_of
from ..oracles.chain import next_atom
from ..oracles.matrices import Residual
from ..problem import Factors, Problem, is_binary, ratio, zero_components
from ..run import interrupts
from ..run.records import Run
from .html import certificate_html

FULL_SIDE = 5000  # largest smaller side whose eigenvalues are all computed
SMALLEST = 5e-324  # number there is: what is positive stays so in any units
TAIL = 1e-12  # share of |X|^2 below which what a rank leaves out is rounding


@dataclass(frozen=True)
class Certificate:
    """Feasibility and stationarity of the factors, in the user's units."""

    violations: tuple[float, ...]  # by how much each factor breaks its structure, at most
    stationarity: float  # see `Problem.stationarity`; 0 at a stationary point
    tol: float
    zero_components: tuple[int, ...]  # components that are zero
    unreached: (
        int  # positive entries of X with a model of 0, if the loss is infinite there; it is computed with a floor
    )
    n_suboptimal: tuple[int, int] | None = None  # L1: entries of the factors not at their exact best value, and all
    blocks: tuple[float, float] | None = None  # what linear programs gained, and what they would still gain
    disagreements: tuple[int, int] | None = (
        None  # entries where 0/1 data are not the model, and not its Boolean product
    )

    @property
    def feasible(self) -> bool:
        return max(self.violations) == 0

    @property
    def stationary(self) -> bool:
        return self.stationarity <= self.tol

    def __str__(self):
        feasible = "yes" if self.feasible else f"no, off by up to {max(self.violations):.1e}"
        stationary = "yes" if self.stationary else "no"
        lines = [f"feasible: {feasible}", f"stationary: {stationary} ({self.stationarity:.1e}, tol {self.tol:g})"]
        if self.n_suboptimal:
            count, total = self.n_suboptimal
            hint = "" if self.blocks else "; several at once might still gain"
            hint += "" if self.blocks or self.disagreements else ", see exact_blocks"
            lines.append(f"entries at their exact minimiser, the others held: {total - count} of {total}{hint}")
        if self.blocks:
            lines.append(
                "rows solved as linear programs gained {:.6g}, and would gain another {:.2g}".format(*self.blocks)
            )
        if self.zero_components:
            lines.append(f"parts that are zero, from 1: {', '.join(str(k + 1) for k in self.zero_components)}")
        if self.unreached:
            lines.append(f"positive entries of X with a model of 0: {self.unreached}")
        if self.disagreements:
            lines.append(
                "entries where X is not the model: {}, not the Boolean product: {}".format(*self.disagreements)
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return certificate_html(self)


def certificate(problem: Problem, run: Run, tol: float) -> Certificate:
    """Of the factors of a run, in the units of the problem."""
    factors, stationarity = run.factors, run.history[-1].stationarity
    violations = tuple(
        times_power(kernels.of(A).largest_by_rows(s.violation, A), e)
        for s, A, e in zip(problem.structures, factors, problem.exponents, strict=True)
    )
    about = violations, stationarity, tol, zero_components(factors), problem.unreached(factors)
    if problem.loss.smooth:
        return Certificate(*about)
    counts = [int(problem.expansion(factors, mode).n_suboptimal.sum()) for mode in problem.modes]
    n_suboptimal = sum(counts), sum(factors[mode].size for mode in problem.modes)
    blocks = (run.details["gained"], run.details["left"]) if "left" in run.details else None
    return Certificate(*about, n_suboptimal, blocks, disagreements(problem, problem.to_user(factors)))


def disagreements(problem: Problem, factors: Factors) -> tuple[int, int] | None:
    """In how many entries 0/1 data differ from `W H`, where overlapping 0/1 parts add up, and from its Boolean product;
    None where not all is 0/1, and X a matrix. Parts are multiplied as sparse matrices, some rows at a time."""
    level = problem.data.level if len(factors) == 2 else None
    if level is None or times_power(level, sum(problem.exponents)) not in (0, 1) or not is_binary(factors):
        return None
    W, H = sparse.csr_array(factors[0]), sparse.csr_array(factors[1].T)
    added = either = 0
    height = max(1, BLOCK // problem.data.shape[1])
    for rows in problem.data.rows(0):
        listed = sparse_matrix(rows, problem.data.shape[1])
        for start in range(0, rows.n_rows, height):
            X, Y = listed[start : start + height].sign(), W[rows.first :][start : start + height] @ H
            added += (Y != X).nnz
            either += (Y.sign() != X).nnz
    return added, either


@dataclass(frozen=True)
class Optimality:
    """How far a least-squares fit is from the best that any factorization of its rank could do.

    By Eckart and Young no matrix of rank r is nearer to X than its truncated singular value decomposition, so the
    relative error of any factorization of rank r, nonnegative or not, is at least `bound`. No `A A'` with r columns is
    nearer to a symmetric X than its r largest eigenvalues, as far as they are positive, with their eigenvectors. A
    tensor that is the sum of r parts has rank at most r in every unfolding: the bound is the largest over the modes.
    """

    relative_error: float
    bound: float
    rigorous: bool  # False: an estimate, from a partial decomposition
    rank: int
    one_more: OneMore | None = None  # where it was asked for
    order: int = 2  # of X

    @property
    def gap(self) -> float:
        """`relative_error - bound`, an upper bound on what could be gained."""
        return max(0.0, self.relative_error - self.bound)

    @property
    def excess(self) -> float:
        """By what share the error is above the bound, at most; infinite where the bound is 0."""
        return self.gap / self.bound if self.bound > 0 else (math.inf if self.gap > 0 else 0.0)

    def __str__(self):
        source = "" if self.order == 2 else ", the Eckart-Young bound of the unfoldings of X"
        if self.bound > 0:
            text = (
                f"the relative error is at most {100 * self.excess:.3g}% above the best possible at rank {self.rank} "
                f"({self.relative_error:.6g} against {self.bound:.6g}{source})"
            )
        else:
            why = "what this rank leaves out of X is at rounding level"
            why = why if self.order == 2 else "no bound above 0 is known from the unfoldings of X"
            text = f"the relative error is at most {self.gap:.3g} above the best possible at rank {self.rank} ({why})"
        text = text if self.rigorous else "estimate: " + text
        return f"{text}\n{self.one_more}" if self.one_more else text


@dataclass(frozen=True)
class OneMore:
    """What one more part could do for a least-squares fit, the present parts held, in the user's units.

    A nonnegative part with unit vectors u, v and its best weight lowers the loss by `(u' (X - W H) v)^2 / 2`; one of a
    tensor, with a unit vector for each mode, by `<X - [[A]], x_1 o ... o x_d>^2 / 2`.
    """

    gain: float  # of the best part that was found
    bound: float  # of every part; infinite where it is not known
    loss: float  # without it
    shares: tuple[float, float]  # of the loss: the gain and the bound
    status: str  # "closed": the two agree to a ten-thousandth; "open"; "not certified": X is too large for a bound
    rounding: bool  # what is left of X is at rounding level, and so is all of this

    def __str__(self):
        if self.rounding:
            return "what is left of X is at rounding level, and so is all that one more part could gain"
        own, most = (f"{100 * share:.3g}% of it" for share in self.shares)
        found = f"the best found by {self.gain:.6g}"
        if self.status == "not certified":
            hint = "not certified: X is too large"
            return f"one more part, the present ones held, lowers the loss: {found} ({own}; {hint})"
        return (
            "with the present parts held, any one more part lowers the loss by at most "
            f"{self.bound:.6g} ({most}), {found} ({self.status})"
        )


def one_more(problem: Problem, factors: Factors) -> OneMore:
    """From the rank-one oracle, on what the factors leave of X."""
    if any(not s.nonnegative for s in problem.structures) or problem.penalty(factors) > 0:
        raise ValueError(
            "one_more=True speaks of nonnegative parts and least squares without penalties; the structures here are "
            f"{' and '.join(map(str, problem.structures))}"
        )
    with interrupts.stoppable(), problem.data.working():
        atom = next_atom(problem, factors, np.random.RandomState(0))
    left = Residual(problem.data, factors)
    # by the entries where they are few enough to be looked at: differences of large sums do not show small losses
    loss = problem.direct_fit(factors) if left.small else problem.precise_fit(factors)
    gain, bound = min(atom.value, 0.0) ** 2 / 2, min(atom.bound, 0.0) ** 2 / 2
    rounding = loss <= left.rounding**2 / 2
    shares = float(ratio(gain, loss)), float(ratio(bound, loss))
    gain, bound, loss = (max(problem.user_objective(x), SMALLEST if x > 0 else 0.0) for x in (gain, bound, loss))
    return OneMore(gain, bound, loss, shares, atom.status, rounding)


def optimality(data: Data, relative_error: float, rank: int, symmetric: bool = False) -> Optimality:
    """The Eckart-Young statement, or that for `A A'`. X is not densified: at most a square of its smaller side is made,
    or of each mode of a tensor."""
    data, order = data.scaled(unit_of(max(map(abs, data.extremes)))), len(data.shape)
    symmetric = symmetric and order == 2
    sides = [min(dim, math.prod(data.shape) // dim) for dim in data.shape]  # of the unfoldings: their ranks at most
    short = 1 if data.in_blocks else int(data.shape[1] < data.shape[0])  # blocks of rows add up along columns alone
    rigorous = data.shape[short] <= FULL_SIDE or order > 2
    if data.norm2 == 0 or (rank >= max(sides) and not (symmetric and rigorous)):
        rigorous, share = True, 0.0  # every X can be met, or is not known not to be
    elif symmetric:
        share = (full_positive_tail if rigorous else partial_positive_tail)(data, rank)
    elif rigorous:
        modes = [short] if order == 2 else range(order)
        within = [mode for mode in modes if rank < sides[mode] and data.shape[mode] <= FULL_SIDE]
        share = max((full_tail(data, rank, mode) for mode in within), default=0.0)
    else:
        share = partial_tail(data, rank)
    bound = math.sqrt(share) if share > TAIL else 0.0
    return Optimality(relative_error, min(bound, relative_error), rigorous, rank, order=order)


def full_tail(data: Data, rank: int, mode: int) -> float:
    """The share of |X|^2 beyond the leading `rank` singular values of X unfolded along a mode, less a margin for
    rounding."""
    eigenvalues, dim = eigvalsh(gram(data, mode)), data.shape[mode]
    # The computed eigenvalues are those of the Gram plus some E. By Ky Fan the sum of the leading ones is off by at
    # most sqrt(rank) |E|_F; E is the rounding of the sums in the Gram (at most the number of columns times eps |X|^2),
    # and of the eigenvalues (backward stable; dim eps |X|^2 is taken for its constant).
    margin = np.finfo(np.float64).eps * (math.prod(data.shape) // dim + dim) * math.sqrt(rank)
    return max(0.0, 1 - float(eigenvalues[-rank:].sum()) / data.norm2 - margin)


def partial_tail(data: Data, rank: int) -> float:
    """The same from the leading singular values alone, which a randomized method may put a little too low."""
    _, s, _ = svd(data, rank, 0, n_iter=10, n_oversamples=20)
    leading = np.square(s.astype(np.float64)).sum()
    return max(0.0, 1 - float(leading) / data.norm2)


def full_positive_tail(data: Data, rank: int) -> float:
    """The share of |X|^2 beyond the `rank` largest eigenvalues that are positive, less a margin for rounding."""
    X = data.double().take(0, slice(None))
    eigenvalues = eigvalsh((X + X.T) / 2, overwrite_a=True)
    leading = float(np.square(np.maximum(eigenvalues[-rank:], 0)).sum())
    # The computed eigenvalues are those of X plus some E, of norm n eps |X| (backward stable; n is taken for its
    # constant). By Weyl each is off by at most |E|, and so the sum of squares of r of them by 2 |E| sqrt(r) |X| and
    # r |E|^2, which is less; the same again is taken for |X|^2.
    margin = 4 * np.finfo(np.float64).eps * data.shape[0] * math.sqrt(min(rank, data.shape[0]))
    return max(0.0, 1 - leading / data.norm2 - margin)


def partial_positive_tail(data: Data, rank: int) -> float:
    """The same from the largest eigenvalues alone, which Lanczos' method may put a little too low."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # noqa: PLC0415  # slow to import

    n = data.shape[0]
    X = LinearOperator((n, n), matvec=lambda v: data.cross((v.reshape(n, 1),) * 2, 0)[:, 0], dtype=data.dtype)
    start = np.random.RandomState(0).uniform(size=n).astype(data.dtype)
    try:
        eigenvalues = eigsh(X, rank, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)
    except ArpackNoConvergence:
        return partial_tail(data, rank)  # which is less
    leading = np.square(np.maximum(eigenvalues.astype(np.float64), 0)).sum()
    return max(0.0, 1 - float(leading) / data.norm2)
