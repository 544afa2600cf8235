"""Batches of samples that come one after the other: W of each is solved for, and H from sufficient statistics of all.

For least squares these are `A = sum W'W` and `B = sum X'W` over batches (Mairal, Bach, Ponce and Sapiro 2010, JMLR 11),
in which H is solved for by coordinate descent; for other divergences the coefficients of the majoriser in H (Lefevre,
Bach and Fevotte 2011, WASPAA). Older batches count less and less. The share of a batch that is seen again, for least
squares, is taken out before the new one is put in, as in the incremental EM of Neal and Hinton (1998). W of a batch is
solved for to rounding or nearly: what it lacks is taken for structure of H, and measured cost more than all else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import kernels
from ..data import Data
from ..losses.expansions import with_ridge
from ..problem import Problem, pose
from ..structures import Elementwise
from .mu import NOTHING
from .newton import WIDE
from .streamed import INNER, Pass, nothing_of

# of coordinate descent, at most, and the share of the first that is enough; W must be exact, or H pays for its errors
SWEEPS: dict[str, tuple[int, float]] = {"W": (200, 1e-6), "H": (5, 1e-2)}
FRESH = 10  # sweeps in an iteration of W that begins anew
ENTRIES = 5  # nonzeros for each entry of H with which a fit of the first batches holds for later ones
ROUNDS = 2  # of Newton's method over the rows of a batch, on W that goes on
ENOUGH = 1e-4  # of the loss of a batch: a round that gains less is the last


@dataclass
class Statistics:
    """What all batches say of H together."""

    first: np.ndarray | float = 0.0  # least squares: `W'W`, (rank, rank); else the numerator, (n_features, rank)
    second: np.ndarray | float = 0.0  # `X'W`, (n_features, rank); else the denominator
    samples: float = 0.0  # how many, older ones counting less
    steps: int = 0

    def fade(self, rho: float) -> None:
        self.first, self.second, self.samples = self.first * rho, self.second * rho, self.samples * rho
        self.steps += 1

    def put(self, new: tuple, old: tuple | None) -> None:
        """The share of a batch, in place of an earlier one."""
        first, second = new if old is None else (a - b for a, b in zip(new, old, strict=True))
        self.first, self.second = self.first + first, self.second + second


@dataclass(frozen=True)
class Online:
    """One batch at a time. `rho`: what earlier batches count once a new one has come."""

    loss: Any
    rank: int
    penalties: tuple[tuple[float, float], tuple[float, float]]  # (l1, l2) of W; of H for each sample
    rho: float
    iterations: int = 30  # for W that begins anew

    @property
    def alternations(self) -> int:
        """Between W of a batch and H, while the batch is at hand: more gain less than they cost."""
        return 3 if self.loss.quadratic else 2

    def statistics(self, H: np.ndarray) -> Statistics:
        """Before the first batch. Where an update is a multiplicative one, H itself counts a little, so that entries
        which the first batches have no use for are there for later ones."""
        if self.loss.quadratic:
            return Statistics()
        return Statistics(H.astype(np.float64) ** (1 / self.loss.exponent(False)), np.ones(H.shape))

    def structure_W(self) -> Elementwise:
        return Elementwise(0.0, np.inf, *self.penalties[0])

    def rows(self, data: Data, H: np.ndarray, W: np.ndarray | None) -> tuple[np.ndarray, float]:
        """W of a batch with H held, from W or anew, and its objective."""
        fresh, problem = W is None, self.problem(data)
        A = self.begun(data, H) if W is None else W
        name = "hals" if self.loss.quadratic else self.row_kernel(data)
        sweeps = (self.iterations * FRESH, SWEEPS["W"][1]) if fresh else SWEEPS["W"]
        inner = sweeps if name == "hals" else INNER[name]
        work = Pass(self.loss, self.structure_W(), H, True, nothing_of, (name, inner), 0.0)
        if name == "hals":
            A, _, fit = work.by_normal_equations(data, A)
            return A, fit + 0.5 * problem.data.norm2 + work.structure.value(A)
        fit = last = np.inf
        for _ in range(self.iterations if fresh else ROUNDS):
            A, _, last = work.by_entries(data, A)
            if last > (1 - ENOUGH) * fit:
                break
            fit = last
        return A, min(fit, last) + work.structure.value(A)

    def problem(self, data: Data) -> Problem:
        """That of all samples alike, in W and H."""
        l1, l2 = (data.shape[0] * penalty for penalty in self.penalties[1])
        return pose(data, self.loss, (self.structure_W(), Elementwise(0.0, np.inf, l1, l2)), self.rank)

    def determined(self, data: Data) -> bool:
        """Whether batches have enough to say of each entry of H that their own best parts are a start for others."""
        return data.n_nonzeros >= ENTRIES * self.rank * data.shape[1]

    def put_in(self, known: Statistics, data: Data, H: np.ndarray, W: np.ndarray) -> None:
        """A batch with W as it is."""
        known.fade(self.rho)
        known.samples += data.shape[0]
        known.put(self.share(data, H, W, 1.0), None)

    def row_kernel(self, data: Data) -> str:
        sparse = data.density < self.loss.sparse_below(nonnegative=True)
        return "newton_kl" if "newton_kl" in self.loss.updates and (sparse or self.rank < WIDE) else "newton"

    def begun(self, data: Data, H: np.ndarray) -> np.ndarray:
        """A start for W: 0, or equal weights that add up to each row where 0 is a place from which losses do not
        move."""
        W = np.zeros((data.shape[0], self.rank), data.dtype)
        if self.loss.quadratic:
            return W
        total = float(H.sum(dtype=np.float64))
        return W + (data.row_sums(0, 1.0) / (total or 1.0))[:, None].astype(data.dtype)

    def learn(self, known: Statistics, data: Data, H: np.ndarray, W: np.ndarray | None, earlier: tuple | None):
        """Put a batch in, `alternations` times with what H became by it: W, H, and the objective with the H that was
        given. `earlier`: W when the batch was last seen, and how many steps ago."""
        known.fade(self.rho)
        weight = 0.0 if earlier is None else self.rho ** earlier[1]
        old = self.share(data, H, earlier[0], weight) if earlier is not None and self.loss.quadratic else None
        known.samples += data.shape[0] * (1 - weight)
        new, cost = self.rows(data, H, W)
        for again in range(self.alternations):
            if again:
                new, _ = self.rows(data, H, new)
            own = self.share(data, H, new, 1.0)
            known.put(own, old)
            old, H = own, self.parts(known, H)
        return new, H, cost

    def share(self, data: Data, H: np.ndarray, W: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """What a batch says of H."""
        first, second = self.loss.share(data, (W, H), True).arrays[:2]
        if not self.loss.quadratic:
            first = first * H.astype(np.float64) ** (1 / self.loss.exponent(False))
        return weight * first, weight * second

    def parts(self, known: Statistics, H: np.ndarray) -> np.ndarray:
        """H from the statistics."""
        l1, l2 = (known.samples * penalty for penalty in self.penalties[1])
        if self.loss.quadratic:
            structure, kind = Elementwise(0.0, np.inf, l1, l2), H.dtype
            gram, cross = with_ridge(np.asarray(known.first), l2).astype(kind), np.asarray(known.second).astype(kind)
            order, rows = np.arange(self.rank), np.arange(len(H))
            return kernels.of(H).hals(H, cross, gram, structure.box(H), order, SWEEPS["H"], rows)[0]
        power = self.loss.exponent(l2 > 0)
        below = known.second + l1 + l2 * H.astype(np.float64)
        new = np.divide(known.first, below, out=np.zeros_like(below), where=below > 0) ** power
        largest = new.max(axis=0, initial=0)
        return np.where(new < NOTHING * largest, 0, new).astype(H.dtype)
