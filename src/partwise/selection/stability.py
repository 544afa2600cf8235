"""Do the parts come again? The same fit many times, from other starts or of resampled data, and its parts matched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..checks import is_int
from ..data.names import counted
from ..data.validation import checked_random_state, checked_rank
from ..errors import warn
from ..problem import Factors
from ..registry import choose
from ..result import Result
from ..result.doubts import warn_if_overcomplete, warn_if_unobserved
from ..run.progress import FitBar, watched
from ..structures import Fixed
from . import connectivity
from .jobs import Interrupted, Jobs, is_fit
from .matching import clustered, compared, matched, silhouettes
from .plots import StabilityPlots
from .resampling import Resample, called, resample_of
from .setting import Setting, seeds

ALIKE = 0.9  # cosine from which on a part is the same again
OFTEN = 0.8  # share of the runs in which a part has to come again, or it is said to differ between them
WORSE = 0.01  # share by which the loss of the consensus parts may be higher before it is said
SEEN = 1e-6  # of what there is to explain: where less is lost, a higher loss is rounding
TOL = 1e-3  # stationarity of the runs: closer ones have the same parts
FITS, DRAWS, REFERENCES = range(3)  # streams of random numbers
N_REFERENCES = 3  # fits of X that resampled data are compared with, the best of them: one may end in a poor optimum


class Part(NamedTuple):
    """How one part of the reference came again in the other runs."""

    reproduced: int  # the other runs whose part that goes with it has a cosine of 0.9 or more
    cosine: float  # median of these cosines over the other runs
    least: float
    silhouette: float  # of its cluster, angles being distances: 1 where runs agree, 0 or less where another is as near
    share: float  # in the sum of the norms of the parts of the reference


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """How far parts come again from start to start; see `partwise.stability`.

    Attributes
    ----------
    result : Result
        The reference: the best of the runs or, where data were resampled, the fit of X as given.
    parts : tuple of Part
        One for each part of `result`: `reproduced`, `cosine`, `least`, `silhouette`, `share`.
    objectives : tuple of float
        Of all runs, each of its own data.
    statuses : tuple of str
        How the runs ended, as `Result.status`.
    n_compared : int
        Runs that the reference was compared with.
    n_asked : int
        Runs that were asked for; there are fewer after Ctrl-C.
    labels : ndarray of shape (n_runs, n_samples)
        The part with most of each sample, -1 if not known; no columns: not kept.
    resample : str or None
        What differed between the runs besides their starts.
    consensus : Result or None
        The median parts held, the first factor fitted to them.
    without_consensus : str
        Why there is none.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
    >>> stability = pw.stability(X, 2, n_runs=4)
    >>> stability.found, bool(stability.weakest > 0.9)
    ((4, 4), True)
    >>> print(stability.sentence)
    both parts came again in 4 of 4 starts (weakest cosine 1.00).
    """

    result: Result  # the reference: the best of the runs or, where data were resampled, the fit of X as given
    parts: tuple[Part, ...]  # one for each part of `result`, in its order
    objectives: tuple[float, ...]  # of all runs, each of its own data
    statuses: tuple[str, ...]  # how the runs ended, as `Result.status`
    n_compared: int  # runs that the reference was compared with: all, or all others where it is one of them
    n_asked: int  # runs that were asked for; there are fewer after Ctrl-C
    labels: np.ndarray  # (n_runs, n_samples): the part with most of each sample, -1 if not known; no columns: not kept
    resample: str | None = None
    consensus: Result | None = None  # the median parts held, the first factor fitted to them
    without_consensus: str = ""  # why there is none

    @classmethod
    def of(
        cls,
        runs: Sequence[Result],
        resample: str | None = None,
        reference: Result | None = None,
        setting: Setting | None = None,
        *,
        rows: Sequence[np.ndarray | None] | None = None,
        n_asked: int | None = None,
    ) -> Stability:
        """From results at hand, of one rank.

        Parameters
        ----------
        runs : sequence of Result
            Two or more.
        resample : str or None
            What differs between them; None: the starts.
        reference : Result, optional
            What they are compared with. None: the one with the least objective.
        setting : Setting, optional
            What they are fits of: the consensus parts are then fitted to it. None: no consensus.
        rows : sequence of arrays or None, optional
            Which rows of X those of each run are. None: the same, where there are as many.
        n_asked : int, optional
            How many runs there were to be.

        Examples
        --------
        >>> import partwise as pw
        >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
        >>> runs = [pw.factorize(X, 2, init="random", random_state=seed) for seed in range(4)]
        >>> pw.Stability.of(runs).found
        (4, 4)
        """
        best = min(runs, key=lambda run: run.objective, default=None) if reference is None else reference
        if best is None or all(run is best for run in runs) or any(run.shape[1:] != best.shape[1:] for run in runs):
            raise ValueError("runs must be two results or more, of data of one shape but for the number of rows")
        target, factors = compared(best), [compared(run) for run in runs]
        found = matched(target, [A for A, run in zip(factors, runs, strict=True) if run is not best])
        orders, centre = clustered(target, factors)
        columns = (
            np.count_nonzero(found >= ALIKE, axis=0),
            np.median(found, axis=0),
            found.min(axis=0),
            silhouettes(factors, orders),
            best.shares,
        )
        stability = cls(
            result=best,
            parts=tuple(Part(*line) for line in zip(*(column.tolist() for column in columns), strict=True)),
            objectives=tuple(run.objective for run in runs),
            statuses=tuple(run.status for run in runs),
            n_compared=len(found),
            n_asked=n_asked or len(runs),
            labels=connectivity.labels(runs, rows, best.shape[0]),
            resample=resample,
            without_consensus="it was not asked for",
        )
        return stability if setting is None else stability.with_consensus(setting, centre)

    def with_consensus(self, setting: Setting, centre: Factors) -> Stability:
        """With the first factor fitted to the median parts, scaled as those of the reference; or the reason why not."""
        try:
            consensus = refitted(setting, self.result, centre)
        except (ValueError, TypeError) as error:  # a structure or solver that does not go with factors that are held
            return replace(self, without_consensus=str(error))
        if consensus.status == "interrupted":
            return replace(self, without_consensus="it was interrupted")
        return replace(self, consensus=consensus, without_consensus="")

    # -- numbers ---------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Number of parts."""
        return len(self.parts)

    @property
    def n_runs(self) -> int:
        """Number of runs that were done."""
        return len(self.objectives)

    @property
    def weakest(self) -> float:
        """The silhouette of the part that has the least."""
        return min(part.silhouette for part in self.parts)

    @property
    def mean(self) -> float:
        """The mean of the silhouettes of the parts."""
        return sum(part.silhouette for part in self.parts) / self.rank

    @property
    def found(self) -> tuple[int, ...]:
        """The number of runs in which each part was found, that of the reference included where it is one of them."""
        itself = self.n_runs - self.n_compared
        return tuple(part.reproduced + itself if part.share > 0 else 0 for part in self.parts)

    @cached_property
    def connectivity(self) -> np.ndarray:
        """The consensus matrix of Brunet et al. (2004): the share of runs in which two samples have most of the same
        part, among those that have both; 1/2 where none has. Of more than 2000 samples, 2000 drawn at random."""
        return connectivity.consensus_matrix(self.labels)

    @cached_property
    def cophenetic(self) -> float:
        """The cophenetic correlation of `connectivity` (Brunet et al. 2004): 1 where samples fall into the same groups
        in all runs. Small ranks have it for trivial reasons, so that it does not choose a rank."""
        return connectivity.cophenetic_correlation(self.connectivity)

    @cached_property
    def dispersion(self) -> float:
        """The dispersion of `connectivity`, the mean of `4 (c - 1/2)^2` (Kim and Park 2007): 1 where all its entries
        are 0 or 1."""
        return float(np.mean(4 * np.square(self.connectivity - 0.5)))

    # -- words -----------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """What was found, to be quoted."""
        return " ".join([self.verdict, *self.notes])

    @property
    def n_weak(self) -> int:
        """Parts that are found in fewer than 80% of the runs."""
        return sum(n < math.ceil(OFTEN * self.n_runs) for n in self.found)

    @property
    def verdict(self) -> str:
        """How many parts came again, and how often."""
        how, total = called(self.resample), self.n_runs
        in_order = sorted(self.found)
        weak, firm = in_order[: self.n_weak], in_order[self.n_weak :]
        least = min(part.least for part in self.parts)
        if not weak:
            times = f"{at_least(firm, total)} of {total} {how.runs}"
            return f"{all_of(self.rank)} came again in {times} (weakest cosine {least:.2f})."
        which = f"{len(weak)} of {self.rank} parts differ{'s' if len(weak) == 1 else ''}"
        if not firm:
            which = f"{all_of(self.rank)} differ{'s' if self.rank == 1 else ''}"
        times = f"{min(weak)}" if min(weak) == max(weak) else f"{min(weak)} to {max(weak)}"
        rest = f", the other{'s' if len(firm) > 1 else ''} in {at_least(firm, total)}" if firm else ""
        return f"{which} from {how.between}: found again in {times} of {total} {how.runs}{rest}."

    @property
    def notes(self) -> list[str]:
        """What else there is to say, a sentence each."""
        notes, zero = [], len(self.result.certificate.zero_components)
        if zero:
            notes.append(f"{counted(zero, 'part')} of the reference {'is' if zero == 1 else 'are'} zero.")
        if self.n_runs < self.n_asked:
            notes.append(f"Interrupted: {self.n_runs} of {self.n_asked} runs were done.")
        if self.excess > WORSE:
            higher = f"{self.excess:.2g} times" if self.excess > 1 else f"{self.excess:.1%}"
            reference = "the best run" if self.resample is None else "the fit of X"
            notes.append(f"The loss of the consensus parts is {higher} higher than that of {reference}.")
        return notes

    @property
    def excess(self) -> float:
        """How much higher the loss of the consensus parts is than that of the reference, as a share of it; 0 where it
        is not, or by no more than rounding."""
        if self.consensus is None or self.consensus.explained > self.result.explained - SEEN:
            return 0.0
        return max(self.consensus.fit / self.result.fit - 1, 0.0) if self.result.fit > 0 else math.inf

    @property
    def table(self) -> str:
        """One line for each part, as text."""
        lines = ["part  share  found again  cosine  least  silhouette"]
        for k, (part, n) in enumerate(zip(self.parts, self.found, strict=True)):
            cosines = f"{part.cosine:6.2f}  {part.least:5.2f}  {part.silhouette:10.2f}"
            lines.append(f"{k + 1:4d}  {part.share:5.1%}  {f'{n} of {self.n_runs}':>11}  {cosines}")
        return "\n".join(lines)

    def __str__(self):
        return self.sentence

    def __repr__(self):
        how = called(self.resample).runs
        return (
            f"<partwise stability: {counted(self.rank, 'part')} in {self.n_runs} {how}, weakest silhouette "
            f"{self.weakest:.2f}>"
        )

    @property
    def plot(self) -> StabilityPlots:
        """Pictures: `stability.plot.parts()`, `.consensus()`."""
        return StabilityPlots(self)

    def save(self, path: Any) -> Path:
        """Write everything to one file, arrays and JSON, that `partwise.load` reads back exact to the bit.

        Examples
        --------
        >>> import os, tempfile, partwise as pw
        >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
        >>> path = os.path.join(tempfile.mkdtemp(), "stability.partwise")
        >>> pw.load(pw.stability(X, 2, n_runs=3).save(path)).n_runs
        3
        """
        from ..io import save  # noqa: PLC0415  # it is built on this class

        return save(self, path)


def all_of(rank: int) -> str:
    return {1: "the only part", 2: "both parts"}.get(rank, f"all {rank} parts")


def at_least(counts: list[int], total: int) -> str:
    """The least of some counts, said as such where they differ."""
    return f"{min(counts)}" if min(counts) == total else f"at least {min(counts)}"


def refitted(setting: Setting, reference: Result, centre: Factors) -> Result:
    """A fit with the median parts held in all modes but the first. They have the norms that those of the reference
    have, and are as near to the median as the structures allow."""
    if setting.symmetric:
        raise ValueError("a symmetric model has one factor: with its parts held there is nothing left to fit")
    problem, held = setting.problem(reference.rank), []
    for mode, unit in enumerate(centre, start=1):
        norms = np.linalg.norm(reference.factors[mode].astype(np.float64), axis=0)
        structure = problem.structures[mode]
        exponent = problem.exponents[mode]
        A = np.ldexp(structure.settle(np.ldexp(unit * norms, -exponent)), exponent)
        held.append(Fixed(A.T if len(setting.shape) == 2 else A))
    words = {} if not reference.loss.smooth else {"solver": "auto"}
    own = replace(setting, loss=reference.loss, structures=(setting.structures[0], *held))
    return own.fit(reference.rank, 0, **words, normalize=None, sort=False)


# -- the runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Study:
    """Runs of one setting at one rank. It is sent to other processes."""

    setting: Setting
    resample: Resample
    rank: int
    seed: int
    init: str | None = "random"  # of each run; None: as the solver starts, where that is part of its method

    def draw(self, number: int) -> tuple[Setting, np.random.Generator, int]:
        """What the data of a run follow from, as `Resample` takes it."""
        draw, turn = divmod(number, self.resample.draws)
        return self.setting, np.random.default_rng([self.seed, DRAWS, draw]), turn

    def rows(self, number: int) -> np.ndarray | None:
        """Which rows of X a run has."""
        return self.resample.rows(*self.draw(number))

    def run(self, number: int) -> Result:
        (seed,) = seeds(self.seed, FITS, self.rank, number)
        return self.setting.of_data(self.resample.draw(*self.draw(number))).fit(self.rank, seed, self.init)

    def fit_of_X(self, number: int) -> Result:
        """A fit of the data as given: the first starts as `factorize` does, others at random."""
        (seed,) = seeds(self.seed, REFERENCES, self.rank, number)
        return self.setting.fit(self.rank, seed, self.init if number else None)

    def done(self, jobs: Jobs, n_runs: int) -> tuple[Result | None, dict[int, Result]]:
        """The best fit of X, where the runs are of other data, and the runs by their numbers: those done when Ctrl-C
        came."""
        keys = {f"run {number + 1}": number for number in range(n_runs)}
        reference, could_be = None, partial(is_fit, self.setting.shape, self.rank)
        try:
            if self.resample.name is not None:
                tasks = {f"X itself, {n + 1}": (n,) for n in range(N_REFERENCES)}
                fits = jobs.each(self.fit_of_X, tasks, could_be)
                reference = min(fits.values(), key=lambda fit: fit.objective)
            jobs.each(self.run, {key: (number,) for key, number in keys.items()}, could_be)
        except Interrupted:
            pass
        return reference, {number: jobs.done[key] for key, number in keys.items() if key in jobs.done}


def stability(  # noqa: PLR0913  # what `factorize` is told, and how often
    X: Any,
    rank: int,
    *,
    n_runs: int = 20,
    resample: Any = None,
    loss: Any = "frobenius",
    structure_W: Any = None,
    structure_H: Any = None,
    structures: Any = None,
    missing: str | None = "nan",
    mask: Any = None,
    weights: Any = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    checkpoint: Any = None,
    resume: Any = None,
    random_state: Any = 0,
    **words: Any,
) -> Stability:
    """Fit X many times and see which parts come again.

    Parts of different runs are matched one to one by their cosines in all modes but the first: for a matrix, those of
    the rows of H. Scale does not count.

    Parameters
    ----------
    X : array-like, SciPy sparse matrix, SparseTensor or frame
        The data, as for `factorize`.
    rank : int
        The number of parts.
    n_runs : int
        How many fits to compare, 2 or more.
    resample : None, "rows", "halves", "counts", "noise" or function
        What differs between the runs besides their random starts. None: nothing. "rows": rows of X are drawn with
        replacement. "halves": a random half of the rows, the next run has the other half. "counts": entries are drawn
        anew from Poisson distributions that have those of X as means. "noise": entries are multiplied by uniform noise
        of up to 3%, which keeps zeros. A function `(X, rng) -> X` gets X as it was passed, and a NumPy Generator.
    loss, structure_W, structure_H, structures, missing, mask, weights
        As for `factorize`.
    n_jobs : int, optional
        Processes that fit side by side, as in joblib; the result is the same bits for any number.
    progress : bool, optional
        A line on standard error that counts fits. None: where somebody is likely to look.
    checkpoint, resume : path, optional
        Keep the fits done in this file, as a pair (path, seconds) every so often; go on from such a file.
    random_state : int, RandomState, Generator or None
        The seed. Same seed and settings, same bits.
    **words
        What else `factorize` takes: solver, tol (1e-3 here), max_iter, symmetric, modes, normalize, sort, n_threads.

    Returns
    -------
    Stability
        `parts`: for each part, in how many other runs it came again (a cosine of 0.9 or more), the median and the least
        of its cosines, its silhouette and its share; `weakest` and `mean` silhouette; `sentence`; `result`, the best
        run or, with `resample`, the best of three fits of X itself; `consensus`, a Result with the median parts;
        `objectives`; `cophenetic` and `dispersion`; `plot.parts()`, `plot.consensus()`; `save(path)`.

    After Ctrl-C the runs done so far count, if they are two or more.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(60, 40, 4, noise=0.1, random_state=0).X
    >>> found = pw.stability(X, 4, n_runs=10)
    >>> print(found)
    all 4 parts came again in 10 of 10 starts (weakest cosine 1.00).
    >>> [part.reproduced for part in found.parts]
    [9, 9, 9, 9]
    >>> found.weakest > 0.9
    True
    """
    if not is_int(n_runs) or n_runs < 2:
        raise ValueError(f"n_runs must be a whole number >= 2, for runs are compared with each other; got {n_runs!r}")
    rank, counts = checked_rank(rank), {"missing": missing, "mask": mask, "weights": weights}
    stated = structure_W, structure_H, structures
    study = Study(
        setting=Setting.of(X, loss, stated, counts, {"tol": TOL, **words}),
        resample=resample_of(resample, X, counts),
        rank=rank,
        seed=int(random_state) if is_int(random_state) else int(checked_random_state(random_state).randint(2**31)),
    )
    study = checked_study(study)
    identity = study.setting.identity(rank, resample=study.resample.identity, random_state=study.seed)
    show = FitBar(watched() if progress is None else progress)
    with Jobs(identity, n_jobs, show, checkpoint, resume) as jobs:
        reference, runs = study.done(jobs, int(n_runs))
    if len(runs) < 2:
        raise KeyboardInterrupt
    warn_if_unfinished(list(runs.values()))
    return Stability.of(
        list(runs.values()),
        study.resample.name,
        reference,
        study.setting,
        rows=[study.rows(number) for number in runs],
        n_asked=int(n_runs),
    )


def checked_study(study: Study) -> Study:
    """Say now what every fit would: what does not go together, and what is to be known of the data."""
    problem = study.setting.problem(study.rank)
    solver, _ = choose(problem, study.setting.words.get("solver", "auto"))
    study.resample.check(study.setting, study.rank)
    warn_if_unobserved(problem, study.setting.modes)
    warn_if_overcomplete(problem, solver)
    if solver.default_init is None:
        return study
    if study.resample.name is None:
        raise ValueError(
            f"{type(solver).__name__} begins with no parts, so that all runs would be the same: use resample='rows', "
            "'halves', 'counts' or 'noise', or another solver"
        )
    return replace(study, init=None)


def warn_if_unfinished(runs: list[Result]) -> None:
    """Where iterations ended before the parts were found."""
    if unfinished := sum(run.status == "max_iter" for run in runs):
        warn(
            f"{unfinished} of {len(runs)} runs had not converged after max_iter={runs[0].n_iter} iterations: parts may "
            "differ for that reason alone. Raise max_iter."
        )
