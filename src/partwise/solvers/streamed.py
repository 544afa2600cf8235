"""One pass over X an iteration, for data in blocks of rows.

While a block is in memory its rows of W are updated against the present H, as `HALS`, `NewtonKL` and `Newton` do, and
add to what the update of H needs: for least squares the Gram matrix of W and `X' W`, in which H is then solved for by
coordinate descent; for other divergences the slopes and curvatures in H, for an extrapolated multiplicative update. No
more than that leaves a block, (n_features, rank). As in online dictionary learning (Mairal, Bach, Ponce and Sapiro
2010, JMLR 11), but with all of X before each update of H; extrapolation as in Ang and Gillis (2019), Neural Computation
31(2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import kernels
from ..checks import POSITIVE_INT
from ..data import Data
from ..kernels.records import Chosen
from ..losses.beta import cancels
from ..losses.expansions import Quadratic, gram_of, with_ridge
from ..problem import Problem, largest
from ..structures import Structure
from .base import Solver, Step, require
from .block import Momentum, State, retreat
from .hals import ALONE, HALS
from .mu import MU
from .newton import WIDE
from .palm import PALM, Effort, descend_face

INNER = {"newton": (1, 0.0, False), "newton_kl": (3, 0.01)}  # how far rows go while they are at hand, as those solvers


def is_plain(structure: Structure) -> bool:
    """Nonnegative, or free, and no more."""
    return structure.elementwise is not None and structure.elementwise.plain


@dataclass
class StreamedState(State):
    """`expansions[1]` is what the last pass said of H, None where the next one has to say it first."""

    ready: bool = False  # whether it was said, of the points


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
        if problem.loss.quadratic and not problem.data.complete and not all(is_plain(s) for s in (W, H)):
            return (  # H takes multiplicative updates there, which measured did not converge
                "Streamed takes least squares with missing entries for factors that are nonnegative only: leave out "
                "other structures and penalties, or pass X in memory"
            )
        return beyond_least_squares(problem) or (f"Streamed cannot take {H} for H" if is_binary(H) else None)

    def prefer(self, problem):
        score = 0.3 if problem.data.in_blocks else -1.0  # in memory all others are better
        return score, "one pass over X an iteration, for data in blocks of rows"

    def configured(self, problem):
        if self.sweeps is not None or not problem.quadratic:
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
        if state.ready:  # what the last pass said of H is not in the file
            W, H = state.points
            _, (share,) = problem.data.each(Share(problem.loss, H, problem.data.complete), W)
            state.expansions[1] = problem.loss.whole(share, problem.data, H, problem.structures[1].ridge)
        return state

    def step(self, problem, state):
        known = state.stationarity[:]
        if state.ready and 1 in problem.modes:
            self.update_H(problem, state)
        objective, new, point = self.pass_over(problem, state)
        if objective <= state.objective or state.beta == 0:
            state.factors = new, state.points[1]
            state.objective, state.ready = objective, True
            state.origins[0], state.points[0] = new, point
            if state.momentum:
                state.momentum.succeed()
        else:
            retreat(state)
            state.ready, state.stationarity[:] = False, known
        return Step(state.factors, state.objective, largest(state.stationarity))

    def update_H(self, problem: Problem, state: StreamedState) -> None:
        """From what the last pass said of it."""
        way: Any = PALM() if problem.loss.quadratic else MU(extrapolate=True)
        A = state.points[1]
        update = way.update(problem, 1, state, np.arange(A.shape[0]))
        known: Any = state.expansions[1]
        state.stationarity[1] = known.stationarity(problem.structures[1], A, problem.size)
        new, old = update.factor, state.origins[1]
        state.origins[1] = new
        state.points[1] = way.beyond(new, old, state.beta, state.boxes[1]) if state.beta > 0 else new

    def pass_over(self, problem: Problem, state: StreamedState) -> tuple[float, Any, Any]:
        """All rows of W, and what they say of H: the objective, W, and the point beyond it."""
        W, H = state.points
        loss: Any = problem.loss
        task = Pass(loss, problem.structures[0], H, problem.data.complete, self.inner(problem), state.beta)
        (new, point), (gains, fit, penalty, share) = problem.data.each(task, W, state.origins[0])
        if problem.quadratic:
            fit += 0.5 * problem.data.norm2
            if cancels(problem.data, fit):
                fit = problem.direct_fit((new, H))
        state.expansions[1] = loss.whole(share, problem.data, H, problem.structures[1].ridge)
        state.stationarity[0] = problem.relative_gain(gains)
        return max(fit, 0.0) + penalty + problem.structures[1].value(H), new, point

    def inner(self, problem: Problem) -> tuple[str, tuple]:
        """How rows of W are brought down."""
        if problem.quadratic:
            return "hals", (self.configured(problem)[0].sweeps, HALS().eps)
        sparse = problem.data.density < problem.loss.sparse_below(nonnegative=True)
        by_entry = "newton_kl" in problem.loss.updates and (sparse or problem.rank < WIDE)
        name = "newton_kl" if by_entry else "newton"
        return name, INNER[name]


@dataclass(frozen=True, eq=False)
class Share:
    """What rows say of H, and no more."""

    loss: Any
    H: np.ndarray
    complete: bool

    def __call__(self, data: Data, W: np.ndarray) -> tuple[tuple, tuple]:
        return (), (self.loss.share(data, (W, self.H), self.complete),)


@dataclass(frozen=True, eq=False)
class Pass:
    """The work of an iteration on a block: rows of W updated from W, the point beyond them on the way from `old`, the
    gains of the components, the loss and the penalty of the rows, and what the point says of H.

    The loss is short of `|x|^2 / 2` for least squares on complete data."""

    loss: Any
    structure: Structure  # of W
    H: np.ndarray
    complete: bool
    inner: tuple[str, tuple]
    beta: float

    @property
    def makes(self) -> int:
        return 2

    def __call__(self, data: Data, W: np.ndarray, old: np.ndarray) -> tuple[tuple, tuple]:
        new, gains, fit = (self.by_normal_equations if self.inner[0] == "hals" else self.by_entries)(data, W)
        point = PALM().beyond(new, old, self.beta, self.box(new)) if self.beta > 0 else new
        share = self.loss.share(data, (point, self.H), self.complete)
        return (new, point), (gains, fit, self.structure.value(new), share)

    def box(self, W: np.ndarray) -> Any:
        entries = self.structure.elementwise
        return entries.box(W) if entries is not None else self.structure

    def by_normal_equations(self, data: Data, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        others, rank = gram_of(self.H), W.shape[1]
        known = Quadratic(others, data.cross((W, self.H), 0))
        if self.structure.elementwise is None:
            slopes = known.slopes_for(self.structure, W)
            gains = self.structure.gains(W, *slopes)
            new = descend_face(self.structure, W, known, Effort(PALM().steps, self.inner[1], 1))
        else:
            rows, gram = np.arange(len(W)), with_ridge(others, self.structure.ridge)
            new, gains = kernels.of(W).hals(W, known.cross, gram, self.box(W), np.arange(rank), self.inner[1], rows)
        return new, gains, 0.5 * known.square(new) - kernels.of(new).inner(new, known.cross)

    def by_entries(self, data: Data, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        name, inner = self.inner
        own = (inner,) if name == "newton_kl" else (self.loss.of_entry, inner)
        rule = self.box(W), self.structure.ridge, *own, Chosen(np.arange(len(W)))
        (new,), (gains, fit) = data.map(getattr(kernels.of(W), name), (W, self.H), 0, *rule)
        return new, gains, fit


def beyond_least_squares(problem: Problem) -> str | None:
    """What holds a problem back that the normal equations do not say all about, in a sentence."""
    if problem.quadratic:
        return None
    tied = [s for s in problem.structures if s.elementwise is None]
    if tied:
        return f"Streamed needs structures that act entry by entry for this loss and these data, got {tied[0]}"
    if problem.data.extremes[0] < 0 or not all(s.nonnegative for s in problem.structures):
        return "Streamed needs nonnegative data and factors for this loss, and where entries are missing"
    return None


def is_binary(structure: Structure) -> bool:
    return structure.elementwise is not None and structure.elementwise.binary
