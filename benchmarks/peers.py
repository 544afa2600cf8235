"""Further sides of the race: scikit-learn's multiplicative updates, and nn-fac where it is installed."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from scipy.sparse import issparse

from partwise.bench import Contest, Side, multiplicative_updates


def nn_fac(contest: Contest, W, H):
    """The iterations of nn-fac's accelerated HALS (the cost that it computes in each is part of its loop)."""
    from nn_fac.nmf import one_nmf_step  # noqa: PLC0415  # optional

    U, V, norm = W.copy(), np.ascontiguousarray(H.T), float(np.linalg.norm(contest.X))
    none = [None, None], [False, False], [False, False]
    while True:
        U, V, _ = one_nmf_step(contest.X, contest.rank, U, V, norm, "hals", 2, *none, False, "UV")
        yield lambda U=U, V=V: (U, V.T)


def sides(contest: Contest) -> dict[str, Side]:
    """Those that can run in this contest."""
    found: dict[str, Side] = {"mu": multiplicative_updates}
    if find_spec("nn_fac") and not issparse(contest.X) and not contest.l1:
        found["nn-fac"] = nn_fac
    return found
