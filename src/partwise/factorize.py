"""The front door: state the loss, the structures and the rank, get parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from .checks import is_positive_int
from .data.foreign import kruskal_factors
from .data.names import checked_modes, factor_names, modes_of
from .data.observed import observed
from .data.units import times_power
from .data.validation import (
    checked_callbacks,
    checked_checkpoint,
    checked_random_state,
    checked_rank,
    checked_symmetric,
    checked_threads,
)
from .errors import warn
from .fingerprint import fingerprint
from .init import Given, Init, Random
from .kernels.threads import limited
from .problem import Problem, zero_components
from .problem.weights import pose_observed
from .registry import choose, resolve
from .result import Result
from .result.certificate import Certificate, certificate
from .result.conventions import Convention
from .result.doubts import warn_if_overcomplete, warn_if_unobserved, warn_if_wild, warn_of_factors, wildness
from .result.provenance import provenance_of
from .run import interrupts
from .run.limits import Limits
from .run.loop import Control, solve, warn_if_unfinished
from .run.progress import Bar, watched
from .run.records import Callback, Run
from .run.scale import with_scale
from .solvers import Solver
from .structures import NonNegative, Structure

MOST_GREEDY = 10_000_000  # nonzeros times rank: beyond, one part at a time takes longer than ten random starts


def factorize(  # noqa: PLR0913  # the one place where everything can be said
    X: Any,
    rank: int,
    *,
    loss: Any = "frobenius",
    structure_W: Structure | str | None = None,
    structure_H: Structure | str | None = None,
    structures: Sequence[Structure | str | None] | None = None,
    symmetric: bool | str = False,
    missing: str | None = "nan",
    mask: Any = None,
    weights: Any = None,
    solver: Any = "auto",
    init: Any = None,
    n_init: int | None = None,
    max_iter: int | None = None,
    tol: float = 1e-4,
    target: float | None = None,
    ftol: float | None = None,
    time_limit: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    checkpoint: Any = None,
    resume: Any = None,
    n_threads: int | None = None,
    normalize: Any = "balanced",
    sort: bool = True,
    modes: Any = None,
    random_state: Any = None,
) -> Result:
    """Take a matrix or a tensor apart: `X ~ W H`, or `X ~ [[A_1, ..., A_d]]`, a sum of `rank` outer products.

    Minimises `loss(X, [[A_1, ..., A_d]]) + sum_i g_i(A_i)`; where symmetric, all factors are one.

    Parameters
    ----------
    X : array-like, SciPy sparse matrix of shape (n_samples, n_features), or SparseTensor
        The data, an array of any order >= 2, or a tensor of `sparse`, TensorLy or pyttb; float32 is computed in float32
        (in float64 for a beta below 1), everything else in float64.
    rank : int
        Number of parts.
    loss : str, number or Loss
        "frobenius" for `1/2 |X - W H|^2`, "kl" for counts, "itakura-saito" for power spectra, a number for the
        beta-divergence of that beta, "huber" for noise with gross errors, "l1" for the sum of absolute differences, or
        an object of `partwise.losses`.
    structure_W, structure_H : Structure, optional
        What is wanted of each factor of a matrix, taken literally; None means nonnegative. See `partwise.structures`.
    structures : sequence of Structure, optional
        The same for any order, one for each mode. Arrays in them, such as fixed parts, are (dim, rank) for a tensor.
    symmetric : bool or "off-diagonal"
        Whether all factors are to be one, for a symmetric X >= 0: similarities, networks, moments. Least squares and a
        nonnegative factor only. "off-diagonal": the diagonal of a matrix does not count.
    missing : "nan", "zeros" or None
        Which entries of X are missing, and do not count: NaN (and entries that a masked array hides); for "zeros" also
        what a sparse X does not store, or what is 0 in an array; for None none may be. See "Missing values and weights"
        in the documentation.
    mask : array or sparse matrix of bool, optional
        True where an entry of X is observed; what a sparse one does not store is not.
    weights : array or sparse matrix, or tuple of vectors, optional
        How much the loss of each entry counts, >= 0; what a sparse one does not store counts nothing. A tuple has one
        vector for each mode, or None: ``(row_weights, None)``, say.
    solver : str or Solver
        A name, a configured solver such as ``solvers.HALS(sweeps=5)``, or "auto" for what measured best.
    init : str, Init, (W, H), factors of a tensor, CP tensor of TensorLy or pyttb, or Result, optional
        Where to start; where symmetric, the first factor alone is taken. None: "nndsvda" if X is a matrix, the rank
        at most min(X.shape), X and the factors nonnegative and no parts given; "greedy" for such tensors under least
        squares, up to 10 million nonzeros times the rank; else "random", as for the Huber loss; for the L1 loss
        "smooth-l1".
    n_init : int, optional
        Number of starts; the best is kept. None: 1, and where `admm` solves for sets that are not convex up to 4,
        until one fits, with a relative error of at most ten times `tol`. From the second on, init=None means random
        (smooth-l1 for the L1 loss).
    max_iter, tol, target, ftol, time_limit
        Stop after this many iterations, at this stationarity, at this objective, where ten iterations lower the error
        by no more than `ftol` times that of the start, or after these seconds, whichever comes first. Ctrl-C ends a
        run as well, with the best result so far. See "When a run stops" in the documentation.
    callbacks : sequence of callables
        Called as ``callback(record, factors)`` after every iteration; a true answer ends the run. An exception in one
        ends it too, and carries what was found as its attribute ``result``.
    progress : bool, optional
        Whether to draw a bar on standard error. None: if it is a terminal or a notebook.
    checkpoint : path, or (path, seconds)
        A file to keep the state of the run in, every 60 seconds unless said otherwise; an older checkpoint there is
        replaced, other files are not.
    resume : path
        A checkpoint to go on from, of the same X, problem and settings; the result has the bits of a run that was never
        interrupted.
    n_threads : int, optional
        Threads to use at most. None: the cores of this process, or what OMP_NUM_THREADS or threadpoolctl allow.
    normalize : "balanced", the name of a factor, a pair of name and norm ("l1", "l2" or "max"), or None
        Where the scale of a part goes: evenly to all factors, or out of the one named, whose parts then have norm 1,
        into another. Parts whose scale a structure fixes (held, bounded, of norm 1) stay as they are.
    sort : bool
        Order parts by their norm, the product of those of their columns, where the structures treat parts alike.
    modes : list of str, or dict of str to labels or None, optional
        Names of the modes of X, in order, and what stands along them, text or numbers, such as ``{"sample": None,
        "nm": wavelengths}``: for pictures, reports and files. None: what an xarray.DataArray says of itself.
    random_state : int, RandomState, Generator or None
        The seed. Same seed and settings, same bits.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> planted = pw.datasets.make_parts(60, 40, 3, noise=0.05, random_state=0)
    >>> result = pw.factorize(planted.X, 3, random_state=0)
    >>> result.W.shape, result.H.shape, result.converged
    ((60, 3), (3, 40), True)
    >>> bool(result.relative_error < 0.06)
    True

    At most two parts in a sample, with weights that add up to 1:

    >>> few = pw.structures.Simplex() & pw.structures.Sparse(2)
    >>> result = pw.factorize(planted.X, 3, structure_W=few, n_init=1, random_state=0)
    >>> int((result.W > 0).sum(axis=1).max()), np.allclose(result.W.sum(axis=1), 1)
    (2, True)
    """
    said = dict(locals())
    limits = Limits(max_iter, tol, target, time_limit, ftol)
    control = Control(limits, checked_callbacks(callbacks), until_fit=n_init is None)  # the time begins to run
    with limited(checked_threads(n_threads)), ExitStack() as stack:
        given = observed(X, missing, mask, weights)
        data = given.data
        stack.enter_context(interrupts.held())
        rank = checked_rank(rank)
        named = checked_modes(modes, data.shape) or modes_of(X)
        stated = stated_structures(len(data.shape), structure_W, structure_H, structures)
        symmetric = checked_symmetric(symmetric)
        check_one_factor(symmetric, structure_H)
        problem = pose_observed(symmetric, given, resolve("loss", loss), stated, rank).normalized()
        warn_if_unobserved(problem, named)
        rng = checked_random_state(random_state)
        chosen, reason = choose(problem, solver)
        warn_if_overcomplete(problem, chosen)
        convention = Convention(problem.with_plain_rows(), normalize, sort)
        starts = make_starts(problem, init, n_init, chosen)
        problem = with_scale(problem, starts[0], chosen, control.clock)
        snapshot = None
        if checkpoint is not None or resume is not None:
            from .run import checkpoint as kept  # noqa: PLC0415  # few ask for it, and to import it takes time

            identity = kept.identity_of(problem, **course(control, chosen, starts))
        if resume is not None:
            snapshot = kept.read_checkpoint(resume, identity, problem, chosen)
            kept.check_iterations(resume, snapshot, max_iter or chosen.max_iter)
        if checkpoint is not None:
            control.writer = stack.enter_context(kept.CheckpointWriter(*checked_checkpoint(checkpoint), identity))
        if watched() if progress is None else progress:
            control.show = stack.enter_context(Bar(control.limits, max_iter or chosen.max_iter, len(starts)))
        run, objectives = solve(problem, starts, chosen, rng, control, snapshot=snapshot)
        with interrupts.finishing():
            wild = wildness(problem, run.factors)
            problem, run, certified = finished(problem, run, convention, chosen.rank_is_limit, tol)
            about: dict = {"solver": repr(chosen), "reason": reason, "objectives": tuple(objectives), "modes": named}
            about |= {"n_missing": math.prod(data.shape) - given.n_observed, "weighted": given.weighted}
            settings = {"rank": rank, "max_iter": max_iter, **course(control, chosen, starts)}
            about |= {
                "provenance": provenance_of(factorize, said, given, settings),
                "compile_seconds": control.clock.compiling,
            }
            result = make_result(problem, run, certified, stated, about)
        if interrupts.came():
            run, result = replace(run, status="interrupted"), replace(result, status="interrupted")
    if run.failure:
        with suppress(AttributeError):  # some exceptions take no attributes
            run.failure.result = result  # type: ignore[attr-defined]
        raise run.failure
    warn_if_unfinished(run, control.limits)
    warn_if_wild(wild)
    warn_of_factors(problem, certified, stated)
    return result


def finished(problem: Problem, run: Run, convention: Convention, trim: bool, tol: float) -> tuple:
    """The problem and the run with factors as they are handed over, and what is certain of them; `trim`: without
    components that are zero."""
    certified = certificate(problem, run, tol) if any(problem.row_units) else None  # its data are in units of rows
    run = convention.apply(replace(run, factors=problem.in_plain_rows(run.factors)))
    problem = problem.with_plain_rows()
    if trim:
        problem, factors = problem.without_zero_components(run.factors)
        run = replace(run, factors=factors)
    if certified is None:
        return problem, run, certificate(problem, run, tol)
    return problem, run, replace(certified, zero_components=zero_components(run.factors))


def stated_structures(order: int, structure_W, structure_H, structures) -> tuple[Structure, ...]:
    """What is asked of each factor, from either way to say it."""
    if structures is None:
        pair = structure_W, structure_H
        if order == 2:
            structures = pair
        elif pair != (None, None):
            raise ValueError(
                f"structure_W and structure_H are for matrices, and X has {order} modes: state structures=[...], one "
                "for each mode, None where it is only to be nonnegative"
            )
        else:
            structures = [None] * order
    elif structure_W is not None or structure_H is not None:
        raise ValueError("structures says what structure_W and structure_H say: give only one of them")
    if isinstance(structures, str | Structure) or not isinstance(structures, Sequence) or len(structures) != order:
        given = f"{len(structures)}" if isinstance(structures, list | tuple) else repr(structures)
        raise ValueError(
            f"structures must be a list of one structure for each of the {order} modes of X, None where a factor is "
            f"only to be nonnegative; got {given}"
        )
    return tuple(map(stated_structure, structures, factor_names(order)))


def check_one_factor(symmetric: bool | str, structure_H) -> None:
    if symmetric and structure_H is not None:
        raise ValueError(f"with symmetric={symmetric!r} there is one factor: state structure_W, not structure_H")


def stated_structure(stated, name: str) -> Structure:
    """What is asked of the factor of this name."""
    try:
        return NonNegative() if stated is None else resolve("structure", stated)
    except (TypeError, ValueError) as error:
        raise type(error)(f"for {name}: {error}") from error


def course(control: Control, solver, starts: list[Init]) -> dict:
    """The settings that the course of a run depends on; on `max_iter` see `check_iterations`."""
    limits = control.limits
    settings = {"solver": repr(solver), "tol": float(limits.tol), "n_init": len(starts), "init": name_of(starts[0])}
    if len(starts) > 1:
        settings["n_init=None"] = control.until_fit
        settings["ftol"] = limits.ftol
    return settings


def name_of(start: Init) -> str:
    """The name of a start, with a fingerprint of arrays that the user gave."""
    given = [A for A in getattr(start, "factors", ()) if A is not None]
    return f"{start.name} {fingerprint(*given)}" if given else start.name


def make_result(problem: Problem, run: Run, certified: Certificate, stated: tuple, about: dict) -> Result:
    return Result(
        factors=problem.to_user(run.factors),
        objective=run.history[-1].objective,
        fit=problem.user_objective(run.fit),
        relative_error=problem.against_null(run.fit),
        data_norm=times_power(problem.null_error, problem.loss.error_power * problem.objective_exponent),
        status=run.status,
        history=run.history,
        certificate=certified,
        loss=problem.loss.in_units(-sum(problem.exponents)),
        structures=stated,
        details=run.details,
        symmetric=problem.symmetric,
        **about,
    )


def make_starts(problem: Problem, spec, n_init: int | None, solver: Solver) -> list[Init]:
    """As many starts as asked for, or as the solver takes, from a name, an Init, arrays or a Result."""
    spec = solver.default_init if spec is None else spec
    order = len(problem.data.shape)
    if n_init is None:
        n_init = solver.starts(problem) if spec is None or as_init(spec, order).seeded else 1
    if not is_positive_int(n_init):
        raise ValueError(f"n_init must be a whole number >= 1, got {n_init!r}")
    if spec is None:
        first = init_for(problem)
        return [first] + [first if first.seeded else Random()] * (n_init - 1)
    start = as_init(spec, order)
    if start.for_l1 and problem.loss.smooth:
        warn(f"init={start.name!r} fits the L1 loss, and is made for it: for {problem.loss} use init=None or 'random'")
    if n_init > 1 and start is solver.default_init:
        name = type(solver).__name__
        raise ValueError(f"{name} begins with no parts, so n_init={n_init} would repeat one run: use n_init=1")
    if n_init > 1 and not start.seeded:
        raise ValueError(
            f"init={start.name!r} gives the same start every time, so n_init={n_init} would repeat one run. "
            "Use init='random', 'nndsvdar', 'smooth-l1' (for the L1 loss) or None, or n_init=1."
        )
    return [start] * n_init


def init_for(problem: Problem) -> Init:
    """SVD-based where that applies, and one part at a time for least squares on tensors of moderate size; both ignore
    parts that are given."""
    applies = (
        problem.data.extremes[0] >= 0
        and all(s.nonnegative and (s.interchangeable or s.fixed) for s in problem.structures)
        and all(s.elementwise is not None for s in problem.structures)
    )
    applies &= problem.data.complete or not problem.data.in_blocks  # holes are not filled in there
    if len(problem.structures) == 2:
        informed = "nndsvda" if problem.rank <= min(problem.data.shape) else "random"
    else:
        moderate = problem.data.n_nonzeros * problem.rank <= MOST_GREEDY
        informed = "greedy" if moderate and problem.quadratic and len(problem.modes) > 1 else "random"
    return resolve("init", problem.loss.start or (informed if applies else "random"))


def as_init(spec, order: int) -> Init:
    """What a start is of data with so many modes."""
    if isinstance(spec, Result):
        return Given(tuple(spec.factors))
    if (factors := kruskal_factors(spec)) is not None:
        return Given(tuple(factors))
    arrays = "a pair (W, H)" if order == 2 else f"{order} factors, each (dim, rank)"
    if isinstance(spec, tuple | list):
        if len(spec) != order:
            raise ValueError(f"init as arrays must be {arrays}, got {len(spec)} items")
        return Given.public(*spec)
    if isinstance(spec, np.ndarray):
        raise TypeError(f"init as arrays must be {arrays}, got one array of shape {spec.shape}")
    return resolve("init", spec)
