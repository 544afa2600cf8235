"""How a run went, and what each number of parts is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .base import BLUE, FEW, ORANGE, PALE, new_figure, plain_axes

if TYPE_CHECKING:
    from ..result import Result


def convergence(result: Result):
    """Objective and stationarity against time, that of compiling left out. A matplotlib Figure.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).random((20, 10))
    >>> picture = pw.factorize(X, 2, random_state=0).plot.convergence()
    """
    time = [record.time for record in result.history]
    fig = new_figure(7.2, 2.7)
    left, right = fig.subplots(1, 2)
    style = {"color": BLUE, "marker": "." if len(time) < FEW else None}
    left.plot(time, [record.objective for record in result.history], **style)
    left.set(title="objective", xlabel="seconds")
    objectives = [record.objective for record in result.history]
    if min(objectives) > 0 and max(objectives) > 1.01 * min(objectives):
        left.set_yscale("log")
    # gaps where a solver gives no estimate: a line across them would show values that were never there
    known = [r.stationarity if 0 < r.stationarity < np.inf else np.nan for r in result.history]
    n_known = int(np.count_nonzero(np.isfinite(known)))
    if n_known:
        right.semilogy(time, known, color=style["color"], marker="." if n_known < FEW else None)
    else:
        right.text(0.5, 0.5, "0 throughout", ha="center", va="center", transform=right.transAxes, fontsize=9)
    if result.certificate.tol > 0:
        right.axhline(result.certificate.tol, color=ORANGE, linewidth=1, linestyle="--", label="tol")
        right.legend(frameon=False, fontsize=8)
    right.set(title="stationarity (estimates; the last is exact)", xlabel="seconds")
    plain_axes(left, right)
    return fig


def path(result: Result):
    """Error against the number of parts, and what each part gained against what any could have. A matplotlib Figure.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).random((20, 10))
    >>> picture = pw.factorize(X, 3, solver="greedy", random_state=0).plot.path()
    """
    steps = [step for step in result.path if step.status != "pruned"]
    if not steps:
        raise ValueError("this result has no path: factorize with solver='greedy'")
    fig = new_figure(7.2, 2.7)
    left, right = fig.subplots(1, 2)
    left.plot([r.rank for r in steps], [r.relative_error for r in steps], color=BLUE, marker="o", markersize=4)
    pruned = [step for step in result.path if step.status == "pruned"]
    if pruned:
        down = [steps[-1], *pruned]
        style = {"color": ORANGE, "marker": "o", "markersize": 4, "linestyle": "--", "label": "taken away again"}
        left.plot([r.rank for r in down], [r.relative_error for r in down], **style)
        left.legend(frameon=False, fontsize=8)
    left.set(title="relative error", xlabel="parts", ylim=(0, None))
    right.bar([r.rank for r in steps], [r.gain for r in steps], color=PALE, label="gained by the part")
    for status, (colour, marker) in {"closed": (BLUE, "_"), "open": (ORANGE, "^")}.items():
        known = [r for r in steps if r.status == status]
        if known:
            style = {"color": colour, "marker": marker, "label": f"no part gains more ({status})"}
            right.scatter([r.rank for r in known], [r.bound for r in known], zorder=3, **style)
    if len(steps) > 1 and all(r.gain > 0 for r in steps):
        right.set_yscale("log")
    right.set(title="loss lowered, others held", xlabel="parts")
    right.legend(frameon=False, fontsize=8)
    plain_axes(left, right)
    for ax in (left, right):
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(0.5, max(r.rank for r in steps) + 0.5)
    return fig
