"""Where nonzeros may be, if several structures have a say: few enough for some, enough for others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

Limit = tuple[int, list[int], int]  # see `Structure.limits`


def best_places(scores: np.ndarray, limits: Sequence[Limit], needed: tuple) -> np.ndarray | None:
    """The mask z with the largest `sum z scores`, at most as many nonzeros as the limits say, and at least `needed` in
    each item and in each component; 0 where a score is -inf. None where there is no such mask.

    An integer program, and in most cases no harder than a linear one: limits on items and on components make a network.
    """
    n, rank = scores.shape
    index = np.arange(n * rank).reshape(n, rank)
    sums = [(index[:, some] if axis else index[:, some].T, 1.0, np.array(count)) for axis, some, count in limits]
    sums += [(rows, -1.0, -np.asarray(least)) for rows, least in zip((index, index.T), needed)]
    blocks = [
        sparse.csr_array(
            (np.full(rows.size, sign), rows.ravel(), np.arange(len(rows) + 1) * rows.shape[1]), (len(rows), n * rank)
        )
        for rows, sign, _ in sums
    ]
    most = np.concatenate([np.broadcast_to(bound, len(rows)) for rows, _, bound in sums])
    open_places = np.isfinite(scores).ravel()
    gains = np.where(open_places, scores.ravel(), 0) / max(np.max(scores), np.finfo(float).tiny)
    constraint = LinearConstraint(sparse.vstack(blocks), ub=most)
    answer = milp(-gains, integrality=1, bounds=Bounds(0, open_places), constraints=constraint)
    return answer.x.reshape(n, rank) > 0.5 if answer.x is not None else None
