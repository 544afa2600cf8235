"""scikit-learn's MiniBatchNMF."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data import Data, as_data
from ..data.observed import place_of
from ..data.validation import checked_random_state
from ..errors import warn_unfinished
from ..factorize import as_init, init_for
from ..init import Given
from ..problem import pose
from ..registry import choose
from ..run.limits import Limits
from ..run.loop import Control, solve
from ..solvers.online import Online, Statistics
from ..structures import NonNegative
from .nmf import NMF
from .sklearn_private import Interval, StrOptions, fit_context

FIRST = 15  # of so many batches one is fitted with the very first
ROUNDING = 2.0**-44  # the share of sums, and of H, that is lost in them
ITERATIONS = 20, 3  # of the batch solver for each of these, and for how many at most


class MiniBatchNMF(NMF):
    """Nonnegative matrix factorization of data that come in batches, a drop-in for
    `sklearn.decomposition.MiniBatchNMF`.

    W of each batch is solved for with H held, and H from sufficient statistics of all batches, older ones counting
    less: no step sizes. The first batches, where they have enough nonzeros for each entry of H, are fitted together by
    the batch solver: the first one of a stream for 20 iterations, a fifteenth of the batches in `fit` for up to 60.
    Parameters, attributes and the objective are
    those of scikit-learn's class.

    Parameters
    ----------
    n_components : int, "auto" or None
        Number of parts; None and "auto": that of a given W or H, else the number of features.
    init, beta_loss, alpha_W, alpha_H, l1_ratio, random_state
        As in `NMF`.
    batch_size : int
        Samples in a batch.
    tol : float
        Relative change of H by a batch at which `fit` ends, once a whole pass has stayed below it; 0: not on account
        of that.
    max_no_improvement : int or None
        Batches without a lower moving average of the objective after which `fit` ends; None: not on account of that.
    max_iter : int
        Passes over the data.
    forget_factor : float
        What a batch counts after one pass over the data, 0 to 1; 1 forgets nothing.
    fresh_restarts : bool
        Whether W of a batch is begun anew each time in `fit`, and W of all samples in the end.
    fresh_restarts_max_iter : int
        Iterations allowed for W of a batch that begins anew, each of ten sweeps for least squares.
    transform_max_iter : int or None
        Iterations allowed in `transform`; None: `max_iter`.
    verbose : int
        Whether to print a line per batch.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The parts, H.
    n_components_, n_iter_, n_steps_ : int
        Number of parts, passes begun over the data, and batches.
    reconstruction_err_ : float
        `sqrt(2 D(X, W H))`.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> rng = np.random.default_rng(0)
    >>> H = rng.uniform(size=(3, 20))
    >>> model = pw.MiniBatchNMF(3, random_state=0)
    >>> for _ in range(100):  # a stream
    ...     model = model.partial_fit(rng.uniform(size=(100, 3)) @ H)
    >>> X = rng.uniform(size=(5, 3)) @ H
    >>> bool(np.abs(X - model.inverse_transform(model.transform(X))).max() < 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **{
            name: NMF._parameter_constraints[name]
            for name in ("init", "beta_loss", "tol", "max_iter", "random_state", "alpha_W", "alpha_H", "l1_ratio")
        },
        "n_components": [Interval(Integral, 1, None, closed="left"), None, StrOptions({"auto"})],
        "verbose": ["verbose"],
        "max_no_improvement": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "forget_factor": [Interval(Real, 0, 1, closed="both")],
        "fresh_restarts": ["boolean"],
        "fresh_restarts_max_iter": [Interval(Integral, 1, None, closed="left")],
        "transform_max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }

    _known: Statistics  # of the batches so far
    missing = None  # of NMF, and not of this class, as are `solver`, `loss` and others

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: Any = None,
        batch_size: int = 1024,
        beta_loss: str | float = "frobenius",
        tol: float = 1e-4,
        max_no_improvement: int | None = 10,
        max_iter: int = 200,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        forget_factor: float = 0.7,
        fresh_restarts: bool = False,
        fresh_restarts_max_iter: int = 30,
        transform_max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.batch_size = batch_size
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.max_iter = max_iter
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.forget_factor = forget_factor
        self.fresh_restarts = fresh_restarts
        self.fresh_restarts_max_iter = fresh_restarts_max_iter
        self.transform_max_iter = transform_max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **params: Any) -> MiniBatchNMF:
        """Learn the parts of X, batch by batch; W and H as in `fit_transform`."""
        self.fit_transform(X, **params)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> np.ndarray:
        """Learn the parts of X and return W, (n_samples, n_components); W and H: the start, with init="custom"."""
        checked = self._in_memory(X)
        n_samples = checked.shape[0]
        if min(self.batch_size, n_samples) == n_samples and self.forget_factor == 0:
            return self._as_nmf(checked, W, H)
        online, W, H = self._begun(checked, W, H, n_samples)
        course = Course(self, online, checked, W, H)
        W, H = course.run()
        self._keep(course.known, H, course.known.steps)
        self.n_iter_ = math.ceil(course.known.steps / course.n_batches)
        if self.n_iter_ >= self.max_iter and self.tol > 0 and not course.ended:
            warn_unfinished(
                f"Maximum number of iterations {self.max_iter} reached. Increase it to improve convergence."
            )
        W = self.transform(X) if self.fresh_restarts else W
        fit = online.problem(as_data(checked)).precise_fit((W, H))
        self.reconstruction_err_ = math.sqrt(2 * max(fit, 0.0))
        return W

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> MiniBatchNMF:
        """Take X as one more batch of a stream; H: where to start, with init="custom", in the first call alone."""
        known = hasattr(self, "components_")
        checked = self._in_memory(X, reset=not known)
        begun = known and bool(self._known.samples or self.components_.any())
        data = as_data(checked)
        if begun:
            parts = np.ascontiguousarray(self.components_.T).astype(checked.dtype)
            online = self._online(checked, parts.shape[1], checked.shape[0])
        else:
            online, start, parts = self._begun(checked, W, H, checked.shape[0])
            self._known = replace(online.statistics(parts), steps=getattr(self, "n_steps_", 0))
        if not (begun or self._known.samples or data.summary.n_nonzeros):  # zeros say nothing of where to start
            self._known.steps += 1
        elif not begun and online.determined(data):
            _, parts = fit_first(online, self._known, data, [data], (start, parts))
        else:
            _, parts, _ = online.learn(self._known, data, parts, None, None)
        self._keep(self._known, parts, self._known.steps)
        return self

    @property
    def _course(self) -> dict[str, Any]:
        """Of `transform`."""
        limit = self.max_iter if self.transform_max_iter is None else self.transform_max_iter
        return {"solver": "auto", "max_iter": limit, "tol": self.tol, "random_state": self.random_state}

    def transform(self, X: Any) -> Any:  # type: ignore[override]
        """The best W for X with the parts held, each row on its own."""
        check_is_fitted(self)
        return super().transform(X)

    @property
    def _fitted_loss(self):
        return self._loss()

    # -- translation ---------------------------------------------------------------------------------------

    def _in_memory(self, X, reset: bool = True):
        if place_of(X) is not None:
            raise ValueError(
                "MiniBatchNMF takes batches in memory: call partial_fit with one block of X after the other, or use "
                "partwise.NMF, which reads X in blocks itself"
            )
        return self._validated(X, None, None, reset=reset).data

    def _begun(self, X, W, H, n_samples: int) -> tuple[Online, np.ndarray, np.ndarray]:
        """The method, and where it starts: both factors (dim, rank)."""
        rank, start = self._start(X, W, H)
        rank = X.shape[1] if rank is None else rank
        online = self._online(X, rank, n_samples)
        problem = pose(as_data(X), online.loss, (NonNegative(), NonNegative()), rank).normalized()
        init = init_for(problem) if start is None else as_init(start, 2)
        W, H = problem.to_user(init(problem, checked_random_state(self.random_state)))
        return online, W, H

    def _online(self, X, rank: int, n_samples: int) -> Online:
        n_features, alpha_H = X.shape[1], self.alpha_W if self.alpha_H == "same" else self.alpha_H
        shares = self.l1_ratio, 1 - self.l1_ratio
        of_W, of_H = (tuple(alpha * share for share in shares) for alpha in (n_features * self.alpha_W, float(alpha_H)))
        rho = self.forget_factor ** (min(self.batch_size, n_samples) / n_samples)
        return Online(self._loss(), rank, (of_W, of_H), rho, self.fresh_restarts_max_iter)  # type: ignore[arg-type]

    def _keep(self, known: Statistics, H: np.ndarray, n_steps: int) -> None:
        self._known, self.n_steps_ = known, n_steps
        self.components_ = np.ascontiguousarray(H.T)
        self.n_components_ = self._n_components = H.shape[1]  # scikit-learn's name, too

    def _as_nmf(self, X, W, H) -> np.ndarray:
        """One batch that leaves nothing behind is a fit of NMF, as in scikit-learn, where that has the solver "mu"."""
        names = ("init", "beta_loss", "tol", "max_iter", "random_state", "alpha_W", "alpha_H", "l1_ratio", "verbose")
        rank = X.shape[1] if self.n_components == "auto" else self.n_components
        settings = {name: getattr(self, name) for name in names}
        model = NMF(rank, solver="mu", ftol=0.0, missing=None, **settings)
        found = model.fit_transform(X, W=W, H=H)
        self._keep(Statistics(steps=model.n_iter_), np.ascontiguousarray(model.components_.T), model.n_iter_)
        self.n_iter_, self.reconstruction_err_ = model.n_iter_, model.reconstruction_err_
        return found


class Course:
    """The batches of one `fit`, again and again, until it is enough."""

    def __init__(self, model: MiniBatchNMF, online: Online, X, W: np.ndarray, H: np.ndarray):
        self.model, self.online, self.W, self.H = model, online, W.copy(), H
        size = min(model.batch_size, X.shape[0])
        self.batches = [slice(start, min(start + size, X.shape[0])) for start in range(0, X.shape[0], size)]
        X = X.tocsr() if hasattr(X, "tocsr") else X
        self.X, self.data = X, [as_data(X[batch]) for batch in self.batches]
        self.n_batches, self.known, self.ended = len(self.batches), online.statistics(H), False
        self.rounding = ROUNDING * sum(online.loss.size(data) ** 2 for data in self.data) / X.shape[0]  # of a sample
        self.seen: list[int | None] = [None] * self.n_batches  # the step at which a batch was last put in
        self.average: float | None = None  # of the objective of a sample, moving
        self.lowest, self.no_better, self.still = math.inf, 0, 0  # batches in a row without improvement, or movement

    def run(self) -> tuple[np.ndarray, np.ndarray]:
        for number in islice(self.numbers(), self.begin(), None):
            before, cost = self.H, self.step(number)
            if self.enough(number, cost, before):
                self.ended = True
                break
        return self.W, self.H

    def begin(self) -> int:
        """The first batches are fitted together, where they have enough to say of H: how many."""
        count = max(1, self.n_batches // FIRST)
        rows = slice(self.batches[count - 1].stop)
        data = as_data(self.X[rows])
        if not self.online.determined(data):
            return 0
        self.W[rows], self.H = fit_first(
            self.online, self.known, data, self.data[:count], (np.ascontiguousarray(self.W[rows]), self.H)
        )
        self.seen[:count] = range(1, count + 1)
        return count

    def numbers(self) -> Iterator[int]:
        for _ in range(self.model.max_iter):
            yield from range(self.n_batches)

    def step(self, number: int) -> float:
        """One batch; its objective for each sample."""
        batch, data, last = self.batches[number], self.data[number], self.seen[number]
        start = None if self.model.fresh_restarts else np.ascontiguousarray(self.W[batch])
        if self.n_batches == 1 and self.online.loss.quadratic:  # what is taken out, being all, must leave no rounding
            self.known, last = Statistics(steps=self.known.steps), None
        earlier = None if last is None else (np.ascontiguousarray(self.W[batch]), self.known.steps + 1 - last)
        new, self.H, cost = self.online.learn(self.known, data, self.H, start, earlier)
        self.W[batch], self.seen[number] = new, self.known.steps
        return cost / len(new)

    def enough(self, number: int, cost: float, before: np.ndarray) -> bool:
        """Whether H hardly moves, or the objective has not improved for long; as scikit-learn has it."""
        model, step = self.model, self.known.steps
        size, n_samples = self.W[self.batches[number]].shape[0], self.W.shape[0]
        share = min(size / (n_samples + 1), 1.0)
        self.average = cost if self.average is None else self.average * (1 - share) + cost * share
        if model.verbose:
            print(f"Minibatch step {step}: mean batch cost: {cost}, ewa cost: {self.average}")
        if step == 1:
            return False
        movement, length = np.linalg.norm(self.H - before), np.linalg.norm(self.H)
        self.still = self.still + 1 if movement <= model.tol * length else 0  # a batch of zeros, for one, moves nothing
        if model.tol > 0 and self.still >= self.n_batches:
            return True
        # near an exact fit rounding hides improvement: it is there while H moves
        better = self.average < self.lowest + (self.rounding if movement > ROUNDING * length else 0.0)
        self.no_better = 0 if better else self.no_better + 1
        self.lowest = min(self.lowest, self.average)
        return model.max_no_improvement is not None and self.no_better >= model.max_no_improvement


def fit_first(
    online: Online, known: Statistics, data: Data, batches: Sequence[Data], start: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """W and H of the first batches together, by some iterations of the batch solver, and what each says of H."""
    problem = online.problem(data).normalized()
    solver, _ = choose(problem, "auto")
    limits = Limits(max_iter=ITERATIONS[0] * min(len(batches), ITERATIONS[1]))
    run, _ = solve(problem, [Given(start)], solver, np.random.RandomState(0), Control(limits))
    W, H = problem.to_user(run.factors)
    ends = np.cumsum([batch.shape[0] for batch in batches])[:-1]
    for batch, rows in zip(batches, np.split(W, ends), strict=True):
        online.put_in(known, batch, H, rows)
    return W, online.parts(known, H)
