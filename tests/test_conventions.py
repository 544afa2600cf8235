"""Scale and order of parts, where some of them are held."""

import numpy as np
import pytest

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_parts

PLANTED = make_parts(30, 20, 4, zeros=0.3, random_state=0)
LENGTHS = np.array([3.0, 0.2])
HELD = PLANTED.H[:2] * LENGTHS[:, None]
TOP = np.where(np.arange(20) < 3, PLANTED.H[2], np.nan)  # of the third part some entries are held
settings = {"random_state": 0, "max_iter": 30, "tol": 1e-3, "sort": False}

# of H; the parts that may be rescaled
PARTLY = {
    "first parts held": (s.Fixed(HELD), [2, 3]),
    "nonnegative, first parts held": (s.NonNegative() & s.Fixed(HELD), [2, 3]),
    "an entry held": (s.NonNegative() & s.Fixed(np.vstack([HELD, TOP[None]])), [3]),
    "zeros held": (s.NonNegative() & s.Fixed(np.where(np.arange(20) < 5, 0.0, np.full((4, 20), np.nan))), [0, 1, 2, 3]),
    "bounds of one part": (s.Box(0, np.where(np.arange(4)[:, None] == 1, 0.5, np.full((4, 20), np.inf))), [0, 2, 3]),
    "columns of norm 1": (s.NonNegative() & s.Columns({(0, 3): s.UnitNorm()}), [1, 2]),
    "sparse, first parts held": (s.NonNegative() & s.Sparse(18, per="component") & s.Fixed(HELD), [2, 3]),
}  # fmt: skip


def fitted(H, normalize):
    return pw.factorize(PLANTED.X, 4, structure_H=H, normalize=normalize, **settings)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("stated", "free"), PARTLY.values(), ids=PARTLY)
def test_parts_that_may_be_are_rescaled_and_others_stay(stated, free):
    plain = fitted(stated, None)
    held = [k for k in range(4) if k not in free]
    for normalize in ("balanced", "H", ("W", "l1"), ("H", "max")):
        result = fitted(stated, normalize)
        assert np.allclose(result.W @ result.H, plain.W @ plain.H)
        assert np.array_equal(result.H[held], plain.H[held])
        assert np.array_equal(result.W[:, held], plain.W[:, held])
        assert result.certificate.feasible
        sizes = {
            "balanced": np.linalg.norm(result.W, axis=0) / np.linalg.norm(result.H, axis=1),
            "H": np.linalg.norm(result.H, axis=1),
            ("W", "l1"): result.W.sum(axis=0),
            ("H", "max"): np.abs(result.H).max(axis=1),
        }[normalize]
        assert np.allclose(sizes[free], 1)


ALL_HELD = {
    "all parts held": s.Fixed(np.vstack([HELD, PLANTED.H[2:]])),
    "an entry of each held": s.Fixed(np.where(np.arange(20) == 3, 0.5, np.full((4, 20), np.nan))),
    "norms": s.UnitNorm(),
    "sums of items": s.Simplex(),
    "a penalty": s.NonNegative() & s.L1(0.1) & s.Fixed(HELD),
    "binary": s.Binary(),
    "smooth": s.NonNegative() & s.Smooth(0.1),
}


@pytest.mark.parametrize("stated", ALL_HELD.values(), ids=ALL_HELD)
def test_it_is_refused_where_no_part_can_be(stated):
    with pytest.raises(ValueError, match="do not allow for any part; use normalize=None"):
        fitted(stated, "H")
