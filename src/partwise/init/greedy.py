"""One part at a time: the greedy solver for least squares as a start for others (Huang and Zhang 2015)."""

from dataclasses import dataclass, replace

import numpy as np

from ..losses import Frobenius
from ..run.interrupts import yielding
from ..structures import NonNegative
from .base import Init
from .empty import Empty

FLOOR = 1e-2  # of the mean of a factor: zeros under losses that cannot leave them, or are infinite there


@dataclass(frozen=True)
class GreedyLS(Init):
    """Parts of a least-squares fit, one at a time, with `rounds` of alternation after each.

    Parameters
    ----------
    rounds : int
        Alternating rounds over all parts after each new one.

    Examples
    --------
    >>> import partwise as pw
    >>> T = pw.datasets.make_cp((8, 7, 6), 2, random_state=0).X
    >>> pw.factorize(T, 2, init=pw.init.GreedyLS(rounds=2)).converged
    True
    """

    rounds: int = 5
    nonnegative = True
    complete = True
    name = "greedy"

    def raw(self, problem, rng):
        from ..solvers.greedy import Greedy  # noqa: PLC0415  # solvers know starts

        plain = replace(problem, loss=Frobenius(), structures=(NonNegative(),) * len(problem.structures))
        solver = Greedy(rounds=self.rounds, certify=False)
        state = solver.init(plain, Empty().raw(plain, rng), 0.0, rng)
        with yielding():
            while not state.full:
                solver.step(plain, state)
        if problem.loss.quadratic:
            return state.factors
        return tuple(np.maximum(A, FLOOR * A.mean()) for A in state.factors)
