"""How many parts: what predicts entries that were left out, and of that what comes again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..checks import is_int, is_number, is_positive_int
from ..data.names import listed
from ..data.observed import Observed
from ..data.units import times_power
from ..data.validation import checked_random_state
from ..errors import IncompatibleError, warn
from ..losses import KL, Frobenius
from ..metrics import core_consistency
from ..problem.weights import mean_of
from ..registry import choose
from ..result import Result
from ..run.progress import FitBar, watched
from .base import Method, Outcome, Split, is_outcome, scored_by, total
from .blocks import Blocks
from .jobs import Interrupted, Jobs, is_fit
from .rule import Window, ranks_in_turn
from .selected import RankRow, RankSelection
from .setting import Setting, seeds
from .speckled import Speckled
from .stability import TOL, Stability
from .thinning import Thinning, holds_counts

METHODS: dict[str, Any] = {"speckled": Speckled, "blocks": Blocks, "thinning": Thinning}
AS_GOOD = 0.01  # a run that ends this share above the best found another optimum, and says nothing of parts
FEWEST_COUNTS = 300  # left out, to say how they vary
ROUNDING = 1e-9  # of the mean of X: an error that is none
FEWEST_RUNS = 3  # whose parts are compared, whatever their objectives
USUAL = 30  # the largest rank tried where the user names none
SPLITS, PATH, STARTS, LAST = range(4)  # what seeds are for


def select_rank(  # noqa: PLR0913  # the one place where everything about a search can be said
    X: Any,
    ranks: int | Sequence[int] | None = None,
    *,
    loss: Any = "frobenius",
    structure_W: Any = None,
    structure_H: Any = None,
    structures: Any = None,
    missing: str | None = "nan",
    mask: Any = None,
    weights: Any = None,
    method: str | Method = "auto",
    n_repeats: int = 3,
    n_starts: int = 5,
    share: float = 0.1,
    patience: int = 2,
    n_jobs: int | None = None,
    progress: bool | None = None,
    checkpoint: Any = None,
    resume: Any = None,
    random_state: Any = 0,
    **words: Any,
) -> RankSelection:
    """How many parts X has: as many as predict entries that were left out, and of these as many as come again.

    Some entries are hidden, `n_repeats` times, and predicted by fits of 1, 2, ... parts, each started from the one
    before it, until `patience` more parts in a row predict no better. From the fewest parts that reach the lowest
    held-out loss up to 5% of its drop, to those that reach it, is the window. There parts of `n_starts` random starts
    are compared, from the most parts down, and the first rank whose weakest part comes again is taken (silhouette of at
    least 0.8); where none does, the fewest parts within 1% of the drop. See "How many parts?" in the documentation.

    Parameters
    ----------
    X : array-like, SciPy sparse matrix, or SparseTensor
        The data, as for `factorize`.
    ranks : int, sequence of int, or None
        Candidates: 1 up to a number, or those given; None: up to 30, as far as X allows. One part is fitted in any
        case, for comparison. From 10 parts on steps grow by a fifth, and are halved around the best rank.
    loss, structure_W, structure_H, structures, missing, mask, weights
        As for `factorize`.
    method : "auto", "speckled", "blocks", "thinning", or Method
        How entries are left out. "speckled": single entries here and there. "blocks": a half of the rows by a half of
        the columns at a time, which needs no solver that takes masks. "thinning": every count is split in two at
        random (counts under KL; trust it where `dispersion` is near 1). "auto": the first of them that applies.
    n_repeats : int
        How often entries are left out, each time others.
    n_starts : int
        Random starts whose parts are compared, at each rank looked at.
    share : float
        The share of entries hidden by "speckled", between 0 and 1.
    patience : int
        How many ranks in a row must predict no better for the search to end; one that is within noise of the best
        counts half.
    n_jobs : int, optional
        Processes, as in scikit-learn; the result is the same for any number. None: one, with its threads.
    progress : bool, optional
        Whether to tell of fits on standard error. None: if it is a terminal or a notebook.
    checkpoint : path, or (path, seconds)
        A file to keep finished fits in, every 60 seconds unless said otherwise.
    resume : path
        A checkpoint to go on from, of the same data and settings.
    random_state : int, RandomState, Generator or None
        The seed. Same seed and settings, same bits.
    **words
        What else `factorize` takes and all fits share: `solver`, `max_iter`, `tol`, `n_threads`, `modes`, ...

    Returns
    -------
    RankSelection
        `rank`, `sentence`, `table`, `window`, `result` (a fit of X at that rank), `stability`, `plot`, `report`.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(60, 40, 4, noise=0.1, random_state=0).X
    >>> selection = pw.select_rank(X)
    >>> selection.rank
    4
    """
    counts = {"missing": missing, "mask": mask, "weights": weights}
    setting = Setting.of(X, loss, (structure_W, structure_H, structures), counts, words)
    candidates = checked_ranks(ranks, setting)
    seed = int(checked_random_state(random_state).randint(2**31))
    told = int(random_state) if is_int(random_state) else None
    plan = Plan(candidates, n_repeats, n_starts, share, patience, seed, told)
    check_plan(plan)
    chosen = resolved_method(method, setting, candidates[0])
    settings = {**asdict(plan), "candidates": list(candidates)}  # as a file has them
    identity = setting.identity(candidates[0], method=repr(chosen), **settings)
    show = FitBar(watched() if progress is None else progress)
    with Jobs(identity, n_jobs, show, checkpoint, resume) as jobs:
        search = Search(X, setting, chosen, plan, jobs)
        with suppress(Interrupted):
            search.run()
    return search.found()


@dataclass(frozen=True)
class Plan:
    """What is to be done, in numbers."""

    candidates: tuple[int, ...]
    n_repeats: int
    n_starts: int
    share: float
    patience: int
    seed: int
    random_state: int | None  # as the user gave it, to be quoted


@dataclass(eq=False)
class Search:
    """The state of a search, so that Ctrl-C leaves what is known."""

    X: Any  # as given
    setting: Setting
    method: Method
    plan: Plan
    jobs: Jobs
    outcomes: dict[int, list[Outcome]] = field(default_factory=dict)  # by rank, one for each split
    curve: dict[int, float] = field(default_factory=dict)  # mean held-out loss by rank
    consistency: dict[int, float] = field(default_factory=dict)
    runs: dict[int, list[Result]] = field(default_factory=dict)  # random starts, by rank
    compared: dict[int, Stability] = field(default_factory=dict)  # those that end as low as the best
    result: Result | None = None

    def run(self) -> None:
        self.predict()
        self.compare()
        self.finish()

    # -- the three stages ------------------------------------------------------------------------------

    def predict(self) -> None:
        """Held-out losses, from one part upwards."""
        numbers = seeds(self.plan.seed, SPLITS, count=self.plan.n_repeats)
        splits = [self.method.split(self.setting, self.plan.share, seed) for seed in numbers]
        for rank in ranks_in_turn(self.plan.candidates, self.plan.patience, self.curve, self.unclear):
            below = max((tried for tried in self.outcomes if tried < rank), default=None)
            tasks = {
                self.key(rank, i): (
                    split,
                    rank,
                    seeds(self.plan.seed, PATH, rank, i)[0],
                    self.outcomes[self.plan.candidates[0]][i] if self.outcomes else None,
                    self.outcomes[below][i] if below else None,
                )
                for i, split in enumerate(splits)
            }
            self.outcomes[rank] = list(self.jobs.each(fit_split, tasks, partial(is_outcome, rank)).values())
            self.curve[rank] = max(float(total(self.outcomes[rank]).mean()), self.floor)
            self.consistency[rank] = self.core_consistency(rank)
            self.forget()

    def unclear(self, rank: int) -> bool:
        """Whether a rank predicts no worse than the best, but for noise."""
        own, best = by_group(self.outcomes[rank]), by_group(self.outcomes[self.window.best])
        return self.curve[rank] - self.curve[self.window.best] <= standard_error(own - best)

    def forget(self) -> None:
        """Drop factors that no other fit starts from: all below the neighbour of the best rank, but for one part."""
        tried = sorted(self.curve)
        at = tried.index(self.window.best)
        for rank in tried[1 : max(at - 1, 1)]:
            for i, outcome in enumerate(self.outcomes[rank]):
                self.outcomes[rank][i] = slim = replace(outcome, factors=())
                self.jobs.done[self.key(rank, i)] = slim

    def key(self, rank: int, split: int) -> str:
        return f"rank {rank}, split {split + 1} of {self.plan.n_repeats}"

    def compare(self) -> None:
        """Parts of random starts, from the most parts of the window down to where they come again."""
        for rank in reversed(self.window.examined):
            numbers = seeds(self.plan.seed, STARTS, rank, count=self.plan.n_starts)
            tasks = {
                f"rank {rank}, start {i + 1} of {self.plan.n_starts}": (self.setting, rank, seed)
                for i, seed in enumerate(numbers)
            }
            could_be = partial(is_fit, self.setting.shape, rank)
            self.runs[rank] = list(self.jobs.each(fit_start, tasks, could_be).values())
            self.compared[rank] = Stability.of(as_good(self.runs[rank]))
            if self.window.is_stable(self.compared[rank].weakest):
                return

    def finish(self) -> None:
        """The fit of X at the rank picked, from the best of its starts."""
        start = min(self.runs.get(self.rank, []), key=lambda run: run.objective, default=None)
        task = {f"rank {self.rank}, all of X": (self.setting, self.rank, seeds(self.plan.seed, LAST)[0], start)}
        could_be = partial(is_fit, self.setting.shape, self.rank)
        self.result = next(iter(self.jobs.each(fit_last, task, could_be).values()))

    # -- what they tell --------------------------------------------------------------------------------

    @cached_property
    def floor(self) -> float:
        """A loss that is as good as none, in the unit of held-out losses."""
        mean = math.ldexp(mean_of(self.setting.given), -self.setting.exponent)
        return ROUNDING * mean ** scored_by(self.setting.loss).degree if mean > 0 else 0.0

    @property
    def window(self) -> Window:
        return Window.of(self.curve)

    @property
    def rank(self) -> int:
        return self.window.pick({rank: found.weakest for rank, found in self.compared.items()})

    def core_consistency(self, rank: int) -> float:
        """Of the first split, for a complete tensor under least squares; else NaN. It is kept with the fits, whose
        factors are forgotten."""
        key, factors = f"rank {rank}, core consistency", self.outcomes[rank][0].factors
        applies = len(self.setting.shape) > 2 and self.setting.loss == Frobenius() and self.setting.given.data.complete
        if key not in self.jobs.done and applies and len(factors) == 1 and not isinstance(self.X, Observed):
            self.jobs.done[key] = core_consistency(self.X, list(factors[0]))
        return self.jobs.done.get(key, math.nan)

    def found(self) -> RankSelection:
        if not self.curve:
            raise KeyboardInterrupt
        window, rank = self.window, self.rank
        stability = Stability.of(self.runs[rank]) if rank in self.runs else None
        return RankSelection(
            rank=rank,
            best=window.best,
            near=window.near,
            window=window.ranks,
            table=tuple(self.row(rank) for rank in sorted(self.curve)),
            curves=np.array([list(map(self.told, total(self.outcomes[rank]))) for rank in sorted(self.curve)]).T,
            candidates=self.plan.candidates,
            dispersion=self.dispersion(window.best),
            result=self.result,
            stability=stability,
            method=repr(self.method),
            loss=self.setting.loss,
            shape=self.setting.shape,
            n_starts=self.plan.n_starts,
            share=self.plan.share,
            random_state=self.plan.random_state,
            status="complete" if self.result is not None else "interrupted",
        )

    def row(self, rank: int) -> RankRow:
        own, best = by_group(self.outcomes[rank]), by_group(self.outcomes[self.window.best])
        compared, outcomes = self.compared.get(rank), self.outcomes[rank]
        return RankRow(
            rank=rank,
            held_out=self.told(self.curve[rank]),
            se=self.told(standard_error(own)),
            excess=self.told(self.curve[rank] - self.curve[self.window.best]),
            excess_se=self.told(standard_error(own - best)),
            training=sum(o.training for o in outcomes) / sum(o.n_training for o in outcomes),
            stability=math.nan if compared is None else compared.mean,
            weakest=math.nan if compared is None else compared.weakest,
            ic1=self.ic1(rank),
            core_consistency=self.consistency[rank],
            fits=sum(o.fits for o in outcomes) + len(self.runs.get(rank, [])),
            seconds=sum(o.seconds for o in outcomes) + sum(run.history[-1].time for run in self.runs.get(rank, [])),
        )

    def told(self, loss: float) -> float:
        """A held-out loss in the units of the user."""
        return times_power(loss, scored_by(self.setting.loss).degree * self.setting.exponent)

    @cached_property
    def counts(self) -> bool:
        """Whether X holds counts, and is fitted as such."""
        return isinstance(self.setting.loss, KL) and holds_counts(self.setting.given.data)

    def ic1(self, rank: int) -> float:
        """`IC1` of Bai and Ng (2002) of the fits to what was left: the logarithm of the mean square, or the deviance
        of counts under KL, and what parameters cost; else NaN."""
        fitted = sum(o.training for o in self.outcomes[rank]) / sum(o.n_training for o in self.outcomes[rank])
        entries = self.outcomes[rank][0].n_training
        known = isinstance(self.setting.loss, Frobenius) or self.counts
        if not known or fitted <= 0:
            return math.nan
        dims = sum(self.setting.shape)
        cost = rank * dims / entries * math.log(max(entries / dims, 1.0))
        return cost + (math.log(2 * fitted) if isinstance(self.setting.loss, Frobenius) else 2 * fitted)

    def dispersion(self, rank: int) -> float:
        """The variance of counts over their mean, from the entries left out; NaN where X does not hold counts, or too
        few were left out."""
        outcomes = self.outcomes[rank]
        few = sum(o.counted.sum() for o in outcomes) < FEWEST_COUNTS
        if few or not self.counts:
            return math.nan
        parameters = rank * sum(self.setting.shape) / outcomes[0].n_training
        # what is fitted to the rest predicts a little worse than the truth would: by one variance a parameter
        ratio = sum(o.chi_square for o in outcomes) / sum(o.expected for o in outcomes)
        return math.ldexp(ratio, self.setting.exponent) / (1 + parameters)


# -- one fit of many: these go to other processes --------------------------------------------------------


def fit_split(split: Split, rank: int, seed: int, base: Outcome | None, last: Outcome | None) -> Outcome:
    return split.fit(rank, seed, base, last)


def fit_start(setting: Setting, rank: int, seed: int) -> Result:
    return setting.fit(rank, seed, tol=setting.tol_of(TOL))


def fit_last(setting: Setting, rank: int, seed: int, start: Result | None) -> Result:
    return setting.factorize(rank, seed, start)


# -- what fits tell together -----------------------------------------------------------------------------


def as_good(runs: Sequence[Result]) -> list[Result]:
    """Those that end as low as the best, and not fewer than three: at a local optimum that is worse parts differ, but
    the data tell which to believe."""
    in_order = sorted(runs, key=lambda run: run.objective)
    best = in_order[0].objective
    close = [run for run in in_order if run.objective <= best + AS_GOOD * abs(best)]
    return close if len(close) >= FEWEST_RUNS else in_order[:FEWEST_RUNS]


def by_group(outcomes: Sequence[Outcome]) -> np.ndarray:
    """What groups of samples add to the mean held-out loss, less what they would with a loss of this mean: by how much
    this mean, a ratio of two sums over groups, varies with them (Cochran 1977, section 6.4)."""
    away = zip(outcomes, total(outcomes), strict=True)
    return np.mean([(o.held_out - mean * o.counted) / o.counted.sum() for o, mean in away], axis=0)


def standard_error(parts: np.ndarray) -> float:
    """Of a sum of independent parts."""
    return float(parts.std(ddof=1) * math.sqrt(len(parts))) if len(parts) > 1 else math.nan


# -- what the user says ----------------------------------------------------------------------------------


def checked_ranks(ranks, setting: Setting) -> tuple[int, ...]:
    """Candidates in order, with 1 for comparison where the structures allow it. More parts than fibers along the
    longest mode, which can be X itself, are left out with a warning."""
    shape, most = setting.shape, math.prod(setting.shape) // max(setting.shape)
    if most == 1:
        raise ValueError(f"X has shape {shape}, and one part is X itself: there is nothing to choose from")
    wanted = numbers_in(min(most, USUAL) if ranks is None else ranks)
    able = [rank for rank in wanted if rank <= most]
    what = f"{most}, {'min(X.shape)' if len(shape) == 2 else 'the number of fibers along its longest mode'},"
    if not able:
        raise ValueError(f"all ranks are above {what} so that the parts could be X itself: give smaller ones")
    if able != wanted:
        left = listed(map(str, wanted[len(able) :]))
        warn(f"ranks above {what} are left out, for so many parts can be X itself: {left}")
    refused = {rank: why for rank in {*able, 1} if (why := unsuited(setting, rank))}
    if all(rank in refused for rank in able):
        raise ValueError(f"X can be fitted with none of these numbers of parts: {refused[able[0]]}")
    if left_out := [rank for rank in able if rank in refused]:
        left = listed(map(str, left_out))
        warn(f"ranks are left out that the structures do not go with ({refused[left_out[0]]}): {left}")
    return tuple(sorted({*able, 1} - set(refused)))


def numbers_in(ranks) -> list[int]:
    """The numbers of parts that the user names, in order."""
    if is_positive_int(ranks):
        return list(range(1, ranks + 1))
    if isinstance(ranks, str) or not isinstance(ranks, Sequence | np.ndarray) or not all(map(is_positive_int, ranks)):
        raise ValueError(f"ranks must be a whole number >= 1, the largest, or a list of such numbers; got {ranks!r}")
    if len(ranks) == 0:
        raise ValueError("ranks is empty: give the numbers of parts to try, or the largest of them")
    return sorted(set(map(int, ranks)))


def unsuited(setting: Setting, rank: int) -> str | None:
    """Why structures do not go with so many parts, where they do not: those that name single parts."""
    try:
        setting.problem(rank)
    except ValueError as error:
        return str(error)
    return None


def check_plan(plan: Plan) -> None:
    for name, least in (("n_repeats", 1), ("n_starts", 2), ("patience", 1)):
        if not is_positive_int(getattr(plan, name)) or getattr(plan, name) < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {getattr(plan, name)!r}")
    if not is_number(plan.share) or not 0 < plan.share < 1:
        raise ValueError(f"share must be a number between 0 and 1, the part of X to leave out; got {plan.share!r}")


def resolved_method(method, setting: Setting, rank: int) -> Method:
    """The method asked for, if it applies, or for "auto" the first that does."""
    check_search(setting, rank)
    if isinstance(method, str) and method not in (*METHODS, "auto"):
        known = ", ".join(map(repr, METHODS))
        raise ValueError(f"method must be 'auto', one of {known}, or a Method of partwise.selection; got {method!r}")
    if not isinstance(method, str | Method):
        raise TypeError(f"method must be a name or a Method of partwise.selection, got {type(method).__name__}")
    made: list[Method] = [make() for name, make in METHODS.items() if method in (name, "auto")]
    reasons = []
    for candidate in [method] if isinstance(method, Method) else made:
        if (why := candidate.refuses(setting, rank)) is None:
            return candidate
        reasons.append(why)
    raise IncompatibleError("; ".join(reasons))


def check_search(setting: Setting, rank: int) -> None:
    """Whether the rank can be searched for at all."""
    if setting.symmetric:
        raise IncompatibleError(
            f"entries cannot be left out of a symmetric model (symmetric={setting.symmetric!r}): compare the parts of "
            "a few ranks with pw.stability, or factorize without it"
        )
    spec = setting.words.get("solver", "auto")
    if choose(setting.problem(rank), spec)[0].rank_is_limit:
        raise IncompatibleError(f"solver={spec!r} finds its number of parts itself: see the path of its result")
