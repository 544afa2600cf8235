"""The one loop. It owns time, stopping, history, callbacks and the starts; a solver only steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ..errors import warn_unfinished
from ..init import Init
from ..problem import Factors, Measured, Problem, zero_components
from ..solvers import Solver, Step
from . import interrupts
from .course import Course, starting_on, working_on
from .limits import LAPSE, Clock, Limits
from .records import OVER, Callback, Record, Run, Snapshot

OFTEN, SELDOM = 10, 50  # iterations between two looks at the true stationarity, if estimates are at `tol`, or not
SLACK = 0.1  # the lowest correction of an estimate: one look should not lead to many
LEFT = 10  # times `tol`: the relative error at which a run that fits exactly may end


class CheckpointWriter(Protocol):
    """Writes snapshots: see `partwise.run.checkpoint`."""

    def due(self) -> bool: ...

    def keep(self, snapshot: Snapshot) -> None: ...

    def close(self, snapshot: Snapshot | None) -> None: ...


@dataclass
class Control:
    """What surrounds the loop: when to stop, whom to tell, where to keep snapshots."""

    limits: Limits
    callbacks: Sequence[Callback] = ()
    show: Callable[[int, Record], None] | None = None  # told the number of the start and its latest record
    writer: CheckpointWriter | None = None
    until_fit: bool = False  # a start that fits is the last
    clock: Clock = field(init=False)

    def __post_init__(self):
        self.clock = Clock(self.limits.time_limit)


def solve(
    problem: Problem,
    starts: Sequence[Init],
    solver: Solver,
    rng: np.random.RandomState,
    control: Control,
    *,
    snapshot: Snapshot | None = None,
) -> tuple[Run, list[float]]:
    """Run every start and keep the best; also the final objectives of all. `problem` is a normalized one.

    With a snapshot: go on from there. Ctrl-C and the time limit end the run with the best so far, in the middle of an
    iteration too.
    """
    best, objectives, iterations, cut = None, [], [], None  # of the starts that are over
    if snapshot:
        best, cut = snapshot.best, snapshot.max_iter
        objectives, iterations = list(snapshot.objectives), list(snapshot.iterations)
        rng = np.random.RandomState()  # not the caller's, which may be NumPy's own
        rng.set_state(snapshot.random)
    latest = None
    with interrupts.stoppable(control.clock.over), interrupts.shielded():
        while len(objectives) < len(starts):
            if best is not None and control.clock.over():
                break
            start = starts[len(objectives)]
            variant = solver.variant(len(objectives), start.informed)
            earlier = {"objectives": tuple(objectives), "best": best, "iterations": tuple(iterations), "max_iter": cut}
            start_run = StartRun(problem, variant, rng, control, earlier)
            try:
                run = start_run.resume(snapshot) if snapshot else start_run.begin(start)
            except KeyboardInterrupt:  # in a function of the user's, before there was anything new
                if best is None:
                    raise
                best = replace(best, status="interrupted")
                break
            snapshot, latest = None, start_run.snapshot(start_run.verdict) if control.writer else None
            objectives.append(run.history[-1].objective)
            iterations.append(run.history[-1].n_iter)
            cut = cut if start_run.verdict else iterations[-1]
            if best is None or objectives[-1] < best.history[-1].objective:
                best = run
            if control.until_fit and fits(problem, run, control.limits):
                break
            if run.status in ("target", "callback", "interrupted"):
                best = replace(best, status=run.status, failure=run.failure)
                break
        assert best is not None
        if control.writer:
            try:
                control.writer.close(latest)
            except KeyboardInterrupt:  # what was found is there all the same
                best = replace(best, status="interrupted")
    return best, objectives


def fits(problem: Problem, run: Run, limits: Limits) -> bool:
    """Whether another start has nothing to gain: all parts are there, and the error is what `tol` leaves."""
    small = problem.relative(run.fit) <= LEFT * limits.tol
    return small and problem.penalty(run.factors) == 0 and not zero_components(run.factors)


class StartRun:
    """One start: the loop over iterations."""

    def __init__(self, problem: Problem, solver: Solver, rng: np.random.RandomState, control: Control, earlier: dict):
        self.problem, self.solver, self.rng, self.control = problem, solver, rng, control
        self.earlier = earlier  # what a snapshot says of the starts before this one
        self.factors: Factors = ()  # in the precision of the course
        self.course: Course
        self.monitor = Monitor(problem, control, self, solver.rank_is_limit)
        self.consistent: dict[str, Any] = {}
        self.verdict: str | None = None  # why the loop ended, if it did before its iterations were used up

    def begin(self, start: Init) -> Run:
        problem, solver, tol = self.problem, self.solver, self.control.limits.tol
        with problem.data.working():
            working = starting_on(problem, solver, start)
            self.factors = start(working, self.rng)
            self.course = Course(problem, working, solver, solver.init(working, self.factors, tol, self.rng))
            found = self.course.look(self.factors) or self.monitor.measure(self.factors)
            objective = found.fit + working.penalty(self.factors)
            self.verdict = self.monitor.record(0, self.factors, objective, found.stationarity)
            self.remember()
            return self.go_on()

    def resume(self, snapshot: Snapshot) -> Run:
        problem, solver, tol = self.problem, self.solver, self.control.limits.tol
        with problem.data.working():
            self.factors = snapshot.factors
            working = working_on(problem, solver, self.factors)
            state = solver.restore(working, self.factors, tol, self.rng, snapshot.state)
            self.course = Course(problem, working, solver, state)
            self.monitor.continue_from(snapshot)
            self.remember()
            over = snapshot.status if snapshot.status in OVER else None  # other reasons may no longer hold
            self.verdict = over or self.monitor.enough()
            if not over:
                self.widen_if_due()
            return self.go_on()

    @property
    def max_iter(self) -> int:
        return self.control.limits.max_iter or self.solver.max_iter

    def go_on(self) -> Run:
        """Iterate until there is a reason to stop."""
        self.remember()
        try:
            with interrupts.exposed():  # a start may have been left early
                interrupts.check()
            if self.verdict:
                return self.end(self.verdict)
            for n_iter in range(self.monitor.history[-1].n_iter + 1, self.max_iter + 1):
                with interrupts.exposed():
                    interrupts.check()
                    step = self.course.step()
                self.arrive(n_iter, step)
                if self.verdict:
                    return self.end(self.verdict)
            return self.end("max_iter")
        except KeyboardInterrupt:
            return self.finish("interrupted")
        except interrupts.TimeIsUp:
            return self.end("time_limit")
        except BaseException:  # an error, or a signal handler of the user's that ends the process
            if self.control.writer:
                self.control.writer.close(self.snapshot(None))
            raise

    def arrive(self, n_iter: int, step: Step) -> None:
        """Note where a step ended, and tell whoever wants to know."""
        control = self.control
        course, self.factors, self.monitor.exact = self.course, step.factors, None
        if course.in_single and control.limits.reached(course.lowest(step.objective)):
            found = self.monitor.measure(step.factors)
            step = step._replace(objective=found.fit + self.problem.penalty(course.taken(step.factors)))
        self.verdict = self.monitor.record(n_iter, *step._replace(done=step.done and not course.in_single))
        # at the end of a run it can wait until somebody goes on from there
        goes_on = self.verdict is None and n_iter < self.max_iter
        if goes_on or (step.done and self.verdict not in OVER):
            self.widen_if_due(step.done)
        self.remember()
        if control.show:
            control.show(len(self.earlier["objectives"]), self.monitor.history[-1])
        if not self.verdict and control.writer and control.writer.due():
            control.writer.keep(self.snapshot(None))

    def widen_if_due(self, done: bool = False) -> None:
        """Go on in double precision where single has done what it can."""
        if self.course.is_spent([record.objective for record in self.monitor.history[-3:]], done):
            self.course.widen()
            self.factors = self.course.state.factors

    def end(self, status: str) -> Run:
        """The end of a run that was not interrupted: the solver may have better factors for it."""
        with interrupts.finishing():
            better = None if status in OVER else self.solver.close(self.course.working, self.course.state)
        if better is not None:
            self.factors, self.monitor.exact = better, None
        return self.finish(status)

    def finish(self, status: str) -> Run:
        with interrupts.finishing():
            details = self.solver.details(self.course.working, self.course.state)
            return replace(self.monitor.finish(self.factors, status), details=details)

    def measure(self, factors: Factors) -> Measured:
        return self.course.measure(factors)

    def taken(self, factors: Factors) -> Factors:
        return self.course.taken(factors)

    def remember(self) -> None:
        """Keep the last consistent state, so that Ctrl-C in mid-step loses only that step."""
        if self.control.writer:
            drawn = self.solver.draws or not self.consistent  # reading the random state takes 0.1 ms
            self.consistent = {
                "random": self.rng.get_state() if drawn else self.consistent["random"],
                "factors": tuple(self.factors),
                "state": self.solver.kept(self.course.state),
                "correction": self.monitor.correction,
                "latest": self.monitor.history[-1],  # the lines before it do not change
            }

    def snapshot(self, status: str | None) -> Snapshot:
        """Of the last moment between two steps."""
        latest = self.consistent["latest"]
        history = (*self.monitor.history[: latest.n_iter], latest)
        rest = {name: value for name, value in self.consistent.items() if name != "latest"}
        return Snapshot(**self.earlier, history=history, status=status, **rest)


class Judge(Protocol):
    """What the monitor asks about factors."""

    def measure(self, factors: Factors) -> Measured:
        """The loss and the stationarity, by the problem as posed."""

    def taken(self, factors: Factors) -> Factors:
        """Factors of that problem."""


class Monitor:
    """Keeps the history of a run and decides when it is over."""

    def __init__(self, problem: Problem, control: Control, judge: Judge, partly: bool = False):
        self.problem, self.control, self.limits, self.clock = problem, control, control.limits, control.clock
        self.judge = judge
        self.partly = partly  # parts that are empty are meant to be, and nothing is said of what they could gain
        self.begin = control.clock()
        self.history: list[Record] = []
        self.correction = 1.0  # the true stationarity over a solver's estimate, when last compared
        self.exact: Measured | None = None  # at the present factors, if it is known
        self.failure: Exception | None = None  # what a callback raised

    def continue_from(self, snapshot: Snapshot) -> None:
        self.history, self.correction = list(snapshot.history), snapshot.correction
        self.begin -= self.history[-1].time

    def measure(self, factors: Factors) -> Measured:
        """The loss and the stationarity, computed afresh."""
        if self.partly:
            problem, factors = self.problem.without_zero_components(self.judge.taken(factors))
            self.exact = problem.precise(factors)
        else:
            self.exact = self.judge.measure(factors)
        return self.exact

    def record(
        self, n_iter: int, factors: Factors, objective: float, stationarity: float, done: bool = False
    ) -> str | None:
        """Add a line to the history; the reason to stop, if there is one."""
        if not math.isfinite(objective):
            raise FloatingPointError(
                f"the objective is not a finite number after {n_iter} iterations: start, bounds or penalties "
                f"are too many orders of magnitude away from X for {self.problem.data.dtype}; bring them nearer"
            )
        converged = False
        if n_iter > 1 and (done or self.look_is_due(n_iter, stationarity)):
            exact = self.measure(factors).stationarity
            ratio = exact / stationarity if stationarity > 0 else 1.0
            self.correction = max(ratio, SLACK) if math.isfinite(ratio) else 1.0
            stationarity, converged = exact, exact <= self.limits.tol
        record = Record(n_iter, self.clock() - self.begin, self.problem.user_objective(objective), stationarity)
        self.history.append(record)
        return self.verdict(record, factors, "converged" if converged else "stalled" if done else None)

    def look_is_due(self, n_iter: int, estimate: float) -> bool:
        """Whether to measure the stationarity: where the estimate, corrected by how far off the last one was, is at
        `tol`; where it is the first one, after a search; and now and then in any case, since estimates may be too high,
        or the correction out of date."""
        tol = self.limits.tol
        if self.correction * estimate <= tol or estimate < self.history[-1].stationarity == math.inf:
            return True
        often = OFTEN if estimate <= tol else SELDOM
        return tol > 0 and estimate != math.inf and n_iter % often == 0

    def verdict(self, record: Record, factors: Factors, ended: str | None) -> str | None:
        stop = self.called_off(record, factors)
        if self.failure:
            return "callback"
        if ended:
            return ended
        if reason := self.enough():
            return reason
        if self.clock.over():
            return "time_limit"
        return "callback" if stop else None

    def enough(self) -> str | None:
        """The limit of the objective that the last record meets."""
        if self.limits.reached(self.history[-1].objective):
            return "target"
        return "ftol" if self.slowed() else None

    def slowed(self) -> bool:
        """Whether the last iterations lowered the error by no more than `ftol` times that of the start."""
        n_iter = self.history[-1].n_iter
        if self.limits.ftol is None or n_iter == 0 or n_iter % LAPSE:
            return False
        first, before, now = (self.problem.error(self.history[place].objective) for place in (0, -1 - LAPSE, -1))
        return before - now <= self.limits.ftol * first

    def finish(self, factors: Factors, status: str) -> Run:
        """The last line of the history gets the numbers of the factors that are given out, in double precision."""
        problem, last, reached = self.problem, self.history[-1], factors
        posed = self.judge.taken(reached)
        factors = problem.as_told(posed)
        fit, stationarity = (self.exact or self.measure(reached)) if factors is posed else self.measure(factors)
        objective = problem.user_objective(fit + problem.penalty(factors))
        self.history[-1] = last._replace(objective=objective, stationarity=stationarity)
        through = last.stationarity < np.inf  # else the solver was still on its way
        if status in ("max_iter", "ftol") and last.n_iter > 1 and through and stationarity <= self.limits.tol:
            status = "converged"
        if status == "converged" and not stationarity <= self.limits.tol:
            status = "stalled"
        return Run(factors, tuple(self.history), status, fit, self.failure)

    def called_off(self, record: Record, factors: Factors) -> bool:
        """Whether a callback wants the run to end, or failed, which ends it too."""
        if not self.control.callbacks or self.failure:
            return False
        view = tuple(map(read_only, self.problem.to_user(self.judge.taken(factors))))
        try:
            with interrupts.at_once():
                wishes = [bool(callback(record, view)) for callback in self.control.callbacks]  # every one is called
        except Exception as error:  # raised again by whoever makes the result
            self.failure = error
            return True
        return any(wishes)


def read_only(A: np.ndarray) -> np.ndarray:
    """A copy, where arrays can be written to: a callback cannot touch the run, nor what it was told before."""
    if isinstance(A, np.ndarray):
        A = A.copy()
        A.flags.writeable = False
    return A


def warn_if_unfinished(run: Run, limits: Limits) -> None:
    """Say how far off a run that used up its iterations, or its time, is, and what to try."""
    if run.status == "time_limit" and run.history[-1].n_iter == 0:
        warn_unfinished(
            f"time_limit={limits.time_limit:g} ended the run before its first iteration: the factors are those of the "
            "start, as far as it got. Allow more time, or use init='random'."
        )
    if run.status != "max_iter" or limits.tol == 0:
        return
    last = run.history[-1]
    reason = (
        f"Stationarity is {last.stationarity:.1e}, tol={limits.tol:g} asks for {last.stationarity / limits.tol:.3g} "
        "times less: raise max_iter, or loosen tol if the objective in result.history no longer moves."
    )
    if last.stationarity <= limits.tol:
        reason = "The solver had not finished: raise max_iter."
    warn_unfinished(f"Maximum number of iterations {last.n_iter} reached. Increase it to improve convergence. {reason}")
