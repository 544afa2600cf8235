"""The race for losses other than least squares, against scikit-learn's multiplicative updates."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

from partwise import registry
from partwise.bench import PATIENCE, Contest, Curve, Heat

from .race import compete, draw, outcome, panels
from .rows import KL_ROWS, Row
from .runs import Outcome, Table, Task, rows, values

HEADER = [
    "data",
    "size",
    "rank",
    "loss",
    "to the objective of",
    "asked",
    "**speed-up, exact**",
    "**speed-up, 0.1%**",
    "starts that got there",
    "objective reached over scikit-learn's",
    "solver taken by `auto`",
]


def tables() -> list[Table]:
    tasks = [Task(row.title, partial(attend, row)) for row in KL_ROWS]
    return [Table("divergences", HEADER, tasks, 20, write=written)]


def attend(row: Row) -> dict:
    """One row: a line for each goal, out of the same runs, and its first heat."""
    contest = row.contest()
    heats = compete(contest, row, {})
    lines = [line(row, contest, [until(heat, goal) for heat in heats], goal) for goal in row.iterations]
    return {"lines": lines, "heat": asdict(heats[0])}


def until(heat: Heat, goal: int) -> Heat:
    """The same runs to scikit-learn's objective after so many iterations."""
    rival, own = heat.curves["scikit-learn"], heat.curves["partwise"]
    target, limit = rival.objectives[goal - 1], PATIENCE * rival.times[goal - 1]
    in_time = max(sum(t <= limit for t in own.times), 1)
    count = next((n for n, f in enumerate(own.objectives[:in_time], 1) if f <= target), in_time)
    return Heat(target, {"scikit-learn": cut(rival, goal), "partwise": cut(own, count)})


def cut(curve: Curve, count: int) -> Curve:
    return Curve(curve.times[:count], curve.objectives[:count])


def line(row: Row, contest: Contest, heats: list[Heat], goal: int) -> list:
    chosen, _ = registry.choose(contest.problem.normalized(), "auto")
    name = next(name for name, make in registry.SOLVERS.items() if make() == chosen)
    loss = registry.resolve("loss", row.loss)
    about = [row.name, contest.size, contest.rank, loss.__class__.__name__, f"{goal} iterations"]
    if row.asked_last and goal == row.iterations[-1]:
        row = replace(row, asked=row.asked_last)
    return [*about, *outcome(row, heats), f"`{name}`"]


def written(outcomes: list[Outcome]) -> str:
    draw(panels({name: value["heat"] for name, value in values(outcomes).items()}), "docs/race_kl.png")
    return rows(HEADER, outcomes)
