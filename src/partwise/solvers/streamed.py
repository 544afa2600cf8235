"""One pass over X an iteration, for data in blocks of rows.

While a block is in memory its rows of W are updated against the present H, as `HALS`, `NewtonKL` and `Newton` do, and
add to what the update of H needs. For least squares that is the Gram matrix of W and `X' W`, in which H is solved for
by coordinate descent; where entries are missing or count differently, a Gram matrix for each feature. For other
divergences it is the slopes in H, for multiplicative updates with extrapolation as long as the objective falls fast,
and then the second derivatives in each row of H too, for steps of Newton's method. As in online dictionary learning
(Mairal, Bach, Ponce and Sapiro 2010, JMLR 11), but with all of X before each update of H; extrapolation as in Ang and
Gillis (2019), Neural Computation 31(2).

A step of Newton's method gains for sure as long as the model changes by no more than a share of itself
(`safe_share`), and the model of an entry changes by no more than the entries of H do that make it. Without
extrapolation that is how far they may go; with it, further and further as long as the objective falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import kernels
from ..checks import POSITIVE_INT
from ..data import Data
from ..kernels.records import Box, Chosen
from ..losses.beta import cancels, safe_share
from ..losses.expansions import OwnGrams, Quadratic, RowQuadratics, SecondOrder, Several, normal_equations
from ..problem import Problem, largest
from ..structures import Structure
from .base import Solver, Step, require
from .block import Momentum, State, retreat
from .hals import ALONE, HALS
from .mu import LITTLE, MU
from .newton import WIDE
from .palm import PALM, Effort, descend_face, moves_freely

INNER = {"newton": (1, 0.0, False), "newton_kl": (3, 0.01)}  # how far rows go while they are at hand, as those solvers
FAST = 0.03  # of the objective, gained in a pass: as long as it falls by more, multiplicative updates do as well
SWEEPS = 10, 0.01  # over a row of H in a step of Newton's method, and the share of the first one's gain that is enough
FURTHER = 1.2  # times as far may the next step go
MOST_CURVED = 1 << 24  # numbers: the most second derivatives that are added up, 128 MB
MOST_GRAMS = 1 << 27  # the same of Gram matrices, for which there is no cheaper way: 1 GB


@dataclass
class StreamedState(State):
    """`expansions[1]` is what the last pass said of H, None where the next one has to say it first."""

    ready: bool = False  # whether it was said, of the points
    curved: bool = False  # with second derivatives, where there are more than those of least squares
    gained: float = np.inf  # share of the objective that the last pass gained
    reach: float = 1.0  # how far Newton's method may go, in units of what is safe


@dataclass(frozen=True)
class Streamed(Solver):
    """In each iteration H is updated from what the last pass over X said of it, and then all rows of W in one pass.

    Parameters
    ----------
    sweeps : int, optional
        Over each row of W for least squares; None: as many as the products with X pay for.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> import partwise as pw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.npy"
    >>> np.save(path, pw.datasets.make_parts(60, 20, 3, random_state=0).X)
    >>> pw.factorize(pw.open(path), 3, random_state=0).solver
    'Streamed(sweeps=5, extrapolate=True)'
    """

    sweeps: int | None = None
    extrapolate: bool = True

    in_blocks = True
    kernels = ()
    states = (StreamedState, Momentum)

    def __post_init__(self):
        require(self, sweeps=POSITIVE_INT | None)

    def supports(self, problem):
        if len(problem.structures) != 2 or 0 not in problem.modes:
            return "Streamed solves for W, or W and H, of a matrix"
        if not problem.loss.additive:
            return f"Streamed minimises beta-divergences, in blocks of rows, got the loss {problem.loss}"
        W, H = problem.structures
        if not (W.separable_rows and W.applies_to_new_rows) or is_binary(W):
            return f"Streamed needs a structure of W that treats all rows alike, each on its own, got {W}"
        grams = problem.data.shape[1] * problem.rank * (problem.rank + 1) // 2
        if problem.loss.quadratic and not problem.data.complete and grams > MOST_GRAMS:
            return (
                f"Streamed needs a Gram matrix for each feature where entries are missing or weighted, "
                f"{8 * grams / 1e9:.2g} GB here: take fewer parts"
            )
        return beyond_least_squares(problem) or (f"Streamed cannot take {H} for H" if is_binary(H) else None)

    def prefer(self, problem):
        score = 0.3 if problem.data.in_blocks else -1.0  # in memory all others are better
        return score, "one pass over X an iteration, for data in blocks of rows"

    def configured(self, problem):
        if self.sweeps is not None or not problem.loss.quadratic:
            return self, ""
        sweeps = ALONE if problem.separable else HALS().configured(problem)[0].sweeps[0]
        return replace(self, sweeps=sweeps), f"at most {sweeps} sweeps over a row of W while it is at hand"

    def init(self, problem, factors, tol, rng):
        H = problem.structures[1]
        return StreamedState(
            factors=tuple(factors),
            points=list(factors),
            origins=list(factors),
            expansions=[None, None],
            boxes=[None, H.elementwise.box(factors[1]) if H.elementwise else H],
            momentum=Momentum() if self.extrapolate and len(problem.modes) > 1 else None,
            rng=rng,
            tol=tol,
            objective=np.inf,
            stationarity=[0.0, 0.0],
        )

    def restore(self, problem, factors, tol, rng, kept):
        state = super().restore(problem, factors, tol, rng, kept)
        if state.ready and 1 in problem.modes:  # what the last pass said of H is not in the file
            W, H = state.points
            _, (share,) = problem.data.each(Share(problem.loss, H, problem.data.complete, state.curved), W)
            state.expansions[1] = self.joined(problem, state, share)
        return state

    def step(self, problem, state):
        known, before = state.stationarity[:], state.objective
        if state.ready and 1 in problem.modes:
            self.update_H(problem, state)
        objective, new, point = self.pass_over(problem, state)
        if objective <= before or state.beta == 0:
            state.factors = new, state.points[1]
            state.objective, state.ready = objective, True
            state.origins[0], state.points[0] = new, point
            state.gained = (before - objective) / before if np.inf > before > 0 else np.inf
            if state.momentum:
                state.reach *= 1.0 if state.momentum.rest else FURTHER
                state.momentum.succeed()
        else:
            retreat(state)
            state.ready, state.reach, state.stationarity[:] = False, 1.0, known
        return Step(state.factors, state.objective, largest(state.stationarity))

    def update_H(self, problem: Problem, state: StreamedState) -> None:
        """From what the last pass said of it."""
        known: Any = state.expansions[1]
        A, structure = state.points[1], problem.structures[1]
        state.stationarity[1] = known.stationarity(structure, A, problem.size)
        way: Any = PALM() if problem.loss.quadratic or isinstance(known, SecondOrder) else MU(extrapolate=True)
        if isinstance(known, SecondOrder):
            new = known.newton_step(A, within_reach(problem.loss, A, state), SWEEPS)
        elif isinstance(known, RowQuadratics) and moves_freely(structure):
            new = known.descend(A, state.boxes[1], way.inner(problem, 1, state.tol))
        else:
            new = way.update(problem, 1, state, np.arange(A.shape[0])).factor
        old, state.origins[1] = state.origins[1], new
        state.points[1] = way.beyond(new, old, state.beta, state.boxes[1]) if state.beta > 0 else new

    def pass_over(self, problem: Problem, state: StreamedState) -> tuple[float, Any, Any]:
        """All rows of W, and what they say of H: the objective, W, and the point beyond it."""
        W, H = state.points
        few = H.size * (problem.rank + 1) // 2 <= MOST_CURVED
        state.curved = few and not problem.loss.quadratic and (state.curved or state.gained < FAST)
        share = Share(problem.loss, H, problem.data.complete, state.curved) if 1 in problem.modes else nothing_of
        task = Pass(
            problem.loss, problem.structures[0], H, problem.data.complete, share, self.inner(problem), state.beta
        )
        (new, point), (gains, fit, penalty, found) = problem.data.each(task, W, state.origins[0])
        if problem.loss.quadratic:
            fit += 0.5 * problem.data.norm2
            if cancels(problem.data, fit):
                fit = problem.direct_fit((new, H))
        if 1 in problem.modes:
            state.expansions[1] = self.joined(problem, state, found)
        state.stationarity[0] = problem.relative_gain(gains)
        return max(fit, 0.0) + penalty + problem.structures[1].value(H), new, point

    def joined(self, problem: Problem, state: StreamedState, share: Several) -> Any:
        """The expansion in H, from what all blocks say of it."""
        loss: Any = problem.loss
        return loss.whole(share, problem.data, state.points[1], problem.structures[1].ridge, state.curved)

    def inner(self, problem: Problem) -> tuple[str, tuple]:
        """How rows of W are brought down."""
        if problem.loss.quadratic:
            return "hals", (self.configured(problem)[0].sweeps, HALS().eps)
        sparse = problem.data.density < problem.loss.sparse_below(nonnegative=True)
        by_entry = "newton_kl" in problem.loss.updates and (sparse or problem.rank < WIDE)
        name = "newton_kl" if by_entry else "newton"
        return name, INNER[name]


def within_reach(loss: Any, A: np.ndarray, state: StreamedState) -> Box:
    """The bounds of H, and as far as a step of Newton's method may go: entries may fall by what is safe, and by more
    later, or for beta > 2, where the curvature grows with the model, rise by it."""
    l1, lower, upper = state.boxes[1]
    share = safe_share(loss.beta)
    if loss.beta > 2:  # what is 0 could not leave it again by a share of itself
        careful = state.beta == 0 or state.reach == 1  # nothing, or the last failure, says that more is safe
        least, most = (LITTLE * A, (1 + share) * A) if careful else (-np.inf, np.inf)
        bounds = np.maximum(lower, least), np.minimum(upper, most)
        return Box(l1, *(np.broadcast_to(bound, A.shape).astype(A.dtype) for bound in bounds))
    share = A.dtype.type(min(1.0, share * (1.0 if state.beta == 0 else state.reach)))
    return Box(l1, np.maximum(lower, (1 - share) * A), np.broadcast_to(upper, A.shape))


@dataclass(frozen=True, eq=False)
class Share:
    """What rows say of H."""

    loss: Any
    H: np.ndarray
    complete: bool
    curved: bool

    def __call__(self, data: Data, W: np.ndarray) -> tuple[tuple, tuple]:
        return (), (self.loss.share(data, (W, self.H), self.complete, self.curved),)


def nothing_of(data: Data, W: np.ndarray) -> tuple[tuple, tuple]:
    """H is held, and nobody asks."""
    return (), (Several(()),)


@dataclass(frozen=True, eq=False)
class Pass:
    """The work of an iteration on a block: rows of W updated from W, the point beyond them on the way from `old`, the
    gains of the components, the loss and the penalty of the rows, and what the point says of H.

    The loss is short of `|x|^2 / 2` for least squares."""

    loss: Any
    structure: Structure  # of W
    H: np.ndarray
    complete: bool  # all of X is
    share: Callable[..., tuple[tuple, tuple]]
    inner: tuple[str, tuple]
    beta: float

    @property
    def makes(self) -> int:
        return 2

    def __call__(self, data: Data, W: np.ndarray, old: np.ndarray) -> tuple[tuple, tuple]:
        new, gains, fit = (self.by_normal_equations if self.inner[0] == "hals" else self.by_entries)(data, W)
        point = PALM().beyond(new, old, self.beta, self.box(new)) if self.beta > 0 else new
        return (new, point), (gains, fit, self.structure.value(new), *self.share(data, point)[1])

    def box(self, W: np.ndarray) -> Any:
        entries = self.structure.elementwise
        return entries.box(W) if entries is not None else self.structure

    def by_normal_equations(self, data: Data, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Rows share a Gram matrix; where entries of X are missing or count differently each has its own."""
        ridge = self.structure.ridge
        known = (normal_equations if self.complete else OwnGrams)(data, (W, self.H), 0, ridge)
        every, square = np.arange(len(W)), None
        if self.structure.elementwise is None:
            gains = self.structure.gains(W, *known.slopes_for(self.structure, W))
            gram, cross = known.around(W)
            smooth = Quadratic(gram - gram.dtype.type(ridge) * np.eye(len(gram), dtype=gram.dtype), cross)
            new = descend_face(self.structure, W, smooth, Effort(PALM().steps, self.inner[1], 1))  # the prox has it
        elif isinstance(known, OwnGrams):
            new, gains, squares = known.descend(W, self.box(W), (*self.inner[1], False, False, 1, False), every)
            square = known.square_with(new, squares)
        else:
            order = np.arange(W.shape[1])
            new, gains = kernels.of(W).hals(W, known.cross, known.gram, self.box(W), order, self.inner[1], every)
        if isinstance(known, OwnGrams) and not known.wild and known.is_wild(new):
            return new, gains, self.loss.direct_fit(data, (new, self.H)) - 0.5 * data.norm2
        square = known.square(new) if square is None else square
        model = square - (ridge * float(np.vdot(new, new)) if ridge else 0.0)
        return new, gains, 0.5 * model - kernels.of(new).inner(new, known.cross)

    def by_entries(self, data: Data, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        name, inner = self.inner
        own = (inner,) if name == "newton_kl" else (self.loss.of_entry, inner)
        rule = self.box(W), self.structure.ridge, *own, Chosen(np.arange(len(W)))
        (new,), (gains, fit) = data.map(getattr(kernels.of(W), name), (W, self.H), 0, *rule)
        return new, gains, fit


def beyond_least_squares(problem: Problem) -> str | None:
    """What holds a problem back that is not one of least squares, in a sentence."""
    if problem.loss.quadratic:
        return None
    tied = [s for s in problem.structures if s.elementwise is None]
    if tied:
        return f"Streamed needs structures that act entry by entry for this loss, got {tied[0]}"
    if problem.data.extremes[0] < 0 or not all(s.nonnegative for s in problem.structures):
        return "Streamed needs nonnegative data and factors for this loss"
    return None


def is_binary(structure: Structure) -> bool:
    return structure.elementwise is not None and structure.elementwise.binary
