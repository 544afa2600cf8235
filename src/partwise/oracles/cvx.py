"""The doubly nonnegative relaxation by a general solver, as a cross-check: slow, and an optional dependency."""

from __future__ import annotations

import numpy as np

from .bounds import largest_eigenvalue


def eigenvalue_bound(B: np.ndarray, **options) -> float:
    """A bound on `max z' B z` over nonnegative unit vectors; `options` go to cvxpy's `solve`.

    Whatever a solver returns, its multipliers S of `Z >= 0`, cut at 0, give `lambda_max(B + S)`, which is one.
    """
    try:
        import cvxpy  # noqa: PLC0415  # optional
    except ImportError as error:
        raise ImportError("method='cvxpy' needs cvxpy: pip install 'partwise[cvxpy]'") from error
    Z = cvxpy.Variable(B.shape, PSD=True)
    sign = Z >= 0
    cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(B @ Z)), [sign, cvxpy.trace(Z) == 1]).solve(**options)
    S = np.zeros_like(B) if sign.dual_value is None else np.asarray(sign.dual_value)
    return largest_eigenvalue(B + np.maximum((S + S.T) / 2, 0))
