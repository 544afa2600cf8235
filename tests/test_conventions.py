"""Scale and order of parts, where some of them are held."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_parts
from partwise.losses import Frobenius
from partwise.result.conventions import Convention
from partwise.run.records import Run

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


# -- three factors -----------------------------------------------------------------------------------------------


def three_factors(*stated):
    """Factors in units of their own, and the problem that knows these."""
    rng = np.random.default_rng(0)
    structures = tuple(structure.bind((dim, 3), transposed=False, name="A") for structure, dim in stated)
    problem = SimpleNamespace(structures=structures, rank=3, symmetric=False, exponents=(3, -2, 1), loss=Frobenius())
    problem.tied = lambda factors: factors
    return problem, tuple(rng.uniform(size=(dim, 3)) * 10.0 ** rng.integers(-3, 4, 3) for _, dim in stated)


def as_array(factors):
    return np.einsum("ir,jr,kr->ijk", *factors)


def norms_of(problem, factors, norm=2):
    """In the user's units."""
    return [np.linalg.norm(A, norm, axis=0) * 2.0**e for A, e in zip(factors, problem.exponents, strict=True)]


def applied(problem, factors, normalize, sort=False):
    return Convention(problem, normalize, sort).apply(Run(factors, (), "converged", 0.0)).factors


def test_three_factors_are_balanced():
    problem, factors = three_factors((s.NonNegative(), 4), (s.Free(), 5), (s.NonNegative(), 6))
    result = applied(problem, factors, "balanced", sort=True)
    assert np.allclose(as_array(result), as_array(factors))
    norms = norms_of(problem, result)
    assert np.allclose(norms, norms[0])
    assert (np.diff(norms[0]) <= 0).all()
    dead = factors[0] * np.array([1, 0, 1]), *factors[1:]
    assert all(not A[:, 1].any() for A in applied(problem, dead, "balanced"))


def test_a_factor_of_three_that_is_held_stays():
    problem, factors = three_factors((s.NonNegative(), 4), (s.UnitNorm(), 5), (s.NonNegative(), 6))
    for normalize in ("balanced", "A3", ("A1", "l1")):
        result = applied(problem, factors, normalize)
        assert np.allclose(as_array(result), as_array(factors))
        assert np.array_equal(result[1], factors[1])
        norms = norms_of(problem, result, 1 if normalize == ("A1", "l1") else 2)
        assert np.allclose({"balanced": norms[0] / norms[2], "A3": norms[2]}.get(normalize, norms[0]), 1)
    with pytest.raises(ValueError, match=r"normalize='A2' would rescale parts, which .* for A1 and UnitNorm.* for A2"):
        applied(problem, factors, "A2")
    with pytest.raises(ValueError, match="normalize must be 'balanced', None, 'A1', 'A2', 'A3', or a pair such as"):
        applied(problem, factors, "W")


@pytest.mark.parametrize("dtype, scale", [(np.float32, 1e19), (np.float32, 1e25), (np.float64, 1e165)])
@pytest.mark.parametrize("normalize", ["balanced", "W", "H", None])
def test_parts_of_very_unequal_scale_are_numbers_in_order(dtype, scale, normalize):
    """Squares of their columns are no numbers."""
    planted = make_parts(30, 20, 3, random_state=0)
    W, H = (A.astype(dtype) for A in (planted.W, planted.H))
    X, told = W @ H, {"loss": "kl", "max_iter": 1, "tol": 0, "solver": "mu", "normalize": normalize}
    scales = np.array([scale, 1, 1 / scale], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = pw.factorize(X, 3, init=(W / scales, scales[:, None] * H), **told)
    assert all(np.all(np.isfinite(A)) for A in result.factors)
    assert np.allclose(result.W.astype(float) @ result.H.astype(float), X, rtol=1e-4)
    parts = [result.W[:, [k]].astype(float) @ result.H[[k]].astype(float) for k in range(3)]
    assert np.all(np.diff([np.linalg.norm(part) for part in parts]) <= 0)
