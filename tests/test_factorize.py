"""The front door: what it takes, what it refuses, and that it gets things right."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import partwise as pw
from partwise import registry, solvers
from partwise import structures as s
from partwise.data import as_data
from partwise.datasets import make_cp, make_parts
from partwise.errors import IncompatibleError
from partwise.losses import Frobenius
from partwise.problem import pose
from partwise.registry import choose, resolve

from .covering import EACH, PAIRS

PLANTED = make_parts(30, 20, 3, random_state=0)
X = PLANTED.X

# a 6 x 3 matrix whose only nonnegative factorization of rank 3, up to order and scale, is the one that made it
# (every part is pure in some sample, and every sample in some feature: Laurberg et al. 2008, "sufficiently spread")
UNIQUE_W = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 1, 0], [0, 2, 1], [1, 0, 2]], float)
UNIQUE_H = np.array([[1, 0, 0, 2], [0, 1, 0, 1], [0, 0, 1, 3]], float)


@pytest.mark.parametrize("solver", ["auto", "hals", "gcd"])
@pytest.mark.parametrize("init", ["random", "spa", "nndsvda"])
def test_a_unique_factorization_is_found(solver, init):
    result = pw.factorize(
        UNIQUE_W @ UNIQUE_H,
        3,
        solver=solver,
        init=init,
        random_state=0,
        tol=1e-9,
        max_iter=5000,
        normalize=("H", "max"),
    )
    assert result.relative_error < 1e-7
    expected = UNIQUE_H / UNIQUE_H.max(axis=1, keepdims=True)
    order = [int(np.argmin([np.linalg.norm(part - known) for part in result.H])) for known in expected]
    assert sorted(order) == [0, 1, 2]
    assert np.allclose(result.H[order], expected, atol=1e-5)


# -- bad input --------------------------------------------------------------------------------------------


def spoiled(value):
    bad = X.copy()
    bad[2, 3] = value
    return bad


CUBE = np.ones((2, 2, 2))
BAD = {
    "NaN": ((spoiled(np.nan), 3), {"missing": None}, "X contains 1 NaN entry: .* drop the rows or columns"),
    "infinity": ((spoiled(np.inf), 3), {}, "X contains 1 infinite entry"),
    "sparse NaN": (
        (sparse.csr_array(spoiled(np.nan)), 3),
        {"missing": None},
        "X contains 1 NaN entry: .* drop the rows or columns",
    ),
    "negative": ((spoiled(-1), 3), {}, "Negative values in data"),
    "strings": (([["a", "b"]], 1), {}, "X must be a matrix or tensor of numbers"),
    "empty": ((np.empty((0, 3)), 1), {}, "X must be a matrix or tensor of numbers"),
    "one dimension": ((np.ones(3), 1), {}, "X must be a matrix or tensor of numbers"),
    "no slices": ((np.ones((2, 0, 2)), 1), {}, "X must be a matrix or tensor of numbers"),
    "structures of a pair": ((CUBE, 1), {"structure_W": "l1(1)"}, "for matrices, and X has 3 modes: state structures="),
    "too few structures": ((CUBE, 1), {"structures": ["l1(1)"]}, "each of the 3 modes of X, None .* got 1$"),
    "unknown for a mode": ((CUBE, 1), {"structures": [None, "simple", None]}, "^for A2: unknown structure 'simple'"),
    "one for all modes": ((CUBE, 1), {"structures": "l1(1)"}, "structures must be a list .* got 'l1"),
    "said twice": ((X, 1), {"structures": [None] * 2, "structure_W": "l1(1)"}, "give only one of them"),
    "NaN in a tensor": ((CUBE * np.nan, 1), {"missing": None}, "X contains 8 NaN entries.* or drop the slices"),
    "negative tensor": ((-CUBE, 1), {}, "Negative values in data"),
    "two factors of three": ((CUBE, 1), {"init": (CUBE[0], CUBE[0])}, "must be 3 factors, each .* got 2 items"),
    "svd of a tensor": ((CUBE, 1), {"init": "nndsvd"}, "use init='greedy' or 'random'"),
    "factor shape": ((CUBE, 1), {"init": (CUBE[0],) * 3}, r"the initial A1 has shape \(2, 2\), .* need \(2, 1\)"),
    "normalize by a pair": ((CUBE, 1), {"normalize": "W"}, "normalize must be 'balanced', None, 'A1', 'A2', 'A3'"),
    "rank 0": ((X, 0), {}, "the rank must be a whole number >= 1"),
    "rank 1.5": ((X, 1.5), {}, "the rank must be a whole number >= 1"),
    "rank True": ((X, True), {}, "the rank must be a whole number >= 1"),
    "solver name": ((X, 3), {"solver": "hal"}, "unknown solver 'hal'.* Did you mean 'hals'?"),
    "loss name": ((X, 3), {"loss": "frobenious"}, "unknown loss 'frobenious'.* Did you mean 'frobenius'?"),
    "init name": ((X, 3), {"init": "nnsvd"}, "unknown init 'nnsvd'.* Did you mean 'nndsvd'"),
    "structure name": (
        (X, 3),
        {"structure_H": "nonegative"},
        "unknown structure 'nonegative'.* Did you mean",
    ),
    "no structure name": ((X, 3), {"structure_H": "l1(1) &"}, "the name of a structure is missing; known are"),
    "structure text": ((X, 3), {"structure_H": "l1("}, "does not make sense: write name"),
    "deep text": ((X, 3), {"structure_H": f"l1({'(' * 10000}"}, "does not make sense: write name"),
    "structure arguments": ((X, 3), {"structure_H": "l1()"}, r"does not make sense: l1 takes weight; write l1\(0.1\)"),
    "missing argument": ((X, 3), {"structure_W": "sparse"}, r"sparse takes k, per='item'; write sparse\(3\)$"),
    "unknown argument": ((X, 3), {"structure_W": "hoyer(sparsty=0.5)"}, "hoyer takes s, per='component'; write hoyer"),
    "too many arguments": ((X, 3), {"structure_W": "simplex(1, 2)"}, "simplex takes per='item'; write simplex"),
    "none taken": ((X, 3), {"init": "spa(3)"}, "spa takes no arguments; write spa$"),
    "option of a solver": ((X, 3), {"solver": "hals(swep=2)"}, r"hals takes sweeps=None, .*; write hals\(sweeps=2\)"),
    "word without quotes": (
        (X, 3),
        {"solver": "greedy(polish=end)"},
        "end is not a number; a word needs quotes, 'end'",
    ),
    "nndsvd rank": ((X, 25), {"init": "nndsvd"}, "can only be used when n_components <= min"),
    "W shape": (
        (X, 3),
        {"init": (PLANTED.W.T, PLANTED.H)},
        r"the initial W has shape \(3, 30\).*need \(30, 3\)",
    ),
    "H shape": (
        (X, 3),
        {"init": (PLANTED.W, PLANTED.H.T)},
        r"the initial H has shape \(20, 3\).*need \(3, 20\)",
    ),
    "NaN start": (
        (X, 3),
        {"init": (PLANTED.W * np.nan, PLANTED.H)},
        "the initial W contains NaN or infinity: give finite",
    ),
    "three arrays": ((X, 3), {"init": (X, X, X)}, "must be a pair"),
    "text start": (
        (X, 3),
        {"init": (PLANTED.W.astype(str), PLANTED.H)},
        "the initial W must be a matrix of real numbers",
    ),
    "ragged start": ((X, 3), {"init": (PLANTED.W, [[1, 2], [3]])}, "the initial H must be a matrix of real numbers"),
    "sparse start": ((X, 3), {"init": (sparse.csr_array(PLANTED.W), PLANTED.H)}, "as a dense array"),
    "n_init True": ((X, 3), {"n_init": True}, "n_init must be a whole number >= 1"),
    "mu and free": (
        (X, 3),
        {"solver": "mu", "structure_H": s.Free()},
        "MU needs nonnegative.*These can: hals, cd, gcd",
    ),
    "fixed shape": (
        (X, 3),
        {"structure_H": s.Fixed(PLANTED.W)},
        "array given for H has shape 30 x 3, but H is 3 x 20",
    ),
    "too many fixed": ((X, 2), {"structure_H": s.Fixed(PLANTED.H)}, "array given for H has shape 3 x 20"),
    "fixed negative": ((X, 3), {"structure_H": s.NonNegative() & s.Fixed(-PLANTED.H)}, "exclude each other"),
    "masked": ((np.ma.masked_greater(X, X.mean()), 3), {"missing": None}, "X has masked entries"),
    "dates": ((np.zeros((3, 3), "M8[D]"), 1), {}, "X must be a matrix or tensor of numbers"),
    "digits as text": (([["1", "2"], ["3", "4"]], 1), {}, "X must be a matrix or tensor of numbers"),
    "complex": (
        (X + 1j, 3),
        {},
        "X must be a matrix or tensor of numbers, dense or sparse: Complex data not supported$",
    ),
    "negative start": ((X, 3), {"init": (-PLANTED.W, PLANTED.H)}, "negative entries.*: clip it with np.maximum"),
    "missing start": ((X, 3), {"init": (None, PLANTED.H)}, "the initial W is missing: give all factors"),
    "not an argument": ((X, 3), {"structure_H": "l1(a)"}, "does not make sense: a is not a number"),
    "or": ((X, 3), {"structure_H": "l1(1) | l2(1)"}, "does not make sense: write name"),
    "two calls": ((X, 3), {"structure_H": "l1(0.1)(2)"}, "does not make sense: write name"),
    "normalize": ((X, 3), {"normalize": "Q"}, "normalize must be"),
    "normalize penalised": ((X, 3), {"normalize": "H", "structure_W": s.L1(0.1)}, "would rescale parts"),
}


@pytest.mark.parametrize("args, options, message", BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_sentence(args, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        pw.factorize(*args, **options)
    assert len(str(caught.value)) < 500


TOPICS = {
    "parts that add up to 1": ({"structure_H": s.Simplex(per="component")}, r"normalize=\('H', 'l1'\) in factorize"),
    "weights that add up to 1": ({"structure_W": "simplex"}, "divide each sample of W by its l1 norm after the fit"),
    "norm 1": ({"structure_W": s.NonNegative() & s.UnitNorm()}, r"normalize=\('W', 'l2'\)"),
    "few nonzeros": ({"structure_W": "nonnegative & sparse(2)"}, "L1 penalties on all factors"),
    "several": (
        {"structure_H": s.Simplex() & s.Orthogonal()},
        "divide each feature of H .* or L1 penalties",
    ),
    "0/1": ({"structure_H": s.Binary()}, "use loss='frobenius' or 'l1'"),
    "shape": ({"structure_H": "nonnegative & smooth(1)"}, "use loss='frobenius'.$"),
    "with a solver": ({"structure_H": s.Simplex(), "solver": "newton_kl"}, "use loss='frobenius', or divide"),
}


@pytest.mark.parametrize("loss", ["kl", "itakura-saito", 1.5])
@pytest.mark.parametrize("options, way_out", TOPICS.values(), ids=TOPICS)
def test_structures_that_a_loss_does_not_take_come_with_a_way_out(loss, options, way_out):
    with pytest.raises(IncompatibleError, match=way_out) as caught:
        pw.factorize(X + 1, 3, loss=loss, **options)
    message = str(caught.value)
    assert "entry by entry (NonNegative, L1, L2, Elastic, Box, Fixed), not" in message or "solver" in options
    assert len(message) < 400


def test_every_example_in_a_message_is_one():
    for kind, (names, _) in registry.KINDS.items():
        for name in names:
            example = registry.takes(name, names[name]).rpartition("write ")[2]
            assert resolve(kind, example) is not None


def test_an_array_is_no_start_and_is_not_printed():
    with pytest.raises(TypeError, match=r"must be a pair \(W, H\), got one array of shape \(30, 20\)"):
        pw.factorize(X, 3, init=X)
    with pytest.raises(TypeError, match="structure must be one of") as caught:
        pw.factorize(X, 3, structure_W=X)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("loss", ["frobenius", "kl", "l1"])
def test_more_parts_than_the_smaller_side_are_warned_of(loss):
    options = {"max_iter": 1, "tol": 0, "random_state": 0}
    with pytest.warns(UserWarning, match=r"rank 21 is above min\(X.shape\) = 20: .* Take a smaller rank, or say more"):
        pw.factorize(X, 21, loss=loss, **options)
    penalised = {"structure_W": "nonnegative & l1(1)", "structure_H": "nonnegative & l1(1)"}
    meant = [{"solver": "greedy", "rank": 21}, {"structure_W": "nonnegative & sparse(2)", "rank": 21}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pw.factorize(X, 20, loss=loss, **options)
        pw.factorize(X, 21, loss=loss, **penalised, **options)
        for choice in meant if loss == "frobenius" else []:
            pw.factorize(X, **options | choice)
        pw.factorize(X, 21, loss=loss, structure_H=s.Fixed(np.ones((21, 20))), **options)


@pytest.mark.parametrize("init", ["smooth-l1", "greedy-l1"])
def test_starts_for_the_l1_loss_are_warned_of_elsewhere(init):
    options = {"init": init, "max_iter": 1, "tol": 0, "random_state": 0}
    with pytest.warns(UserWarning, match=f"init='{init}' fits the L1 loss.* for Frobenius.* use init=None"):
        pw.factorize(X, 3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pw.factorize(X, 3, loss="l1", **options)


def test_incompatible_pairs_have_their_own_error():
    with pytest.raises(IncompatibleError):
        pw.factorize(X, 3, solver="mu", structure_W=s.Free())
    with pytest.raises(TypeError, match=r"^for A1: structure must be one of .* got 1$"):
        pw.factorize(CUBE, 1, structures=[1, None, None])
    with pytest.raises(TypeError, match="solver must be one of"):
        pw.factorize(X, 3, solver=3)
    with pytest.raises(TypeError, match="callbacks must be functions"):
        pw.factorize(X, 3, callbacks=[5])
    with pytest.raises(TypeError, match="unsupported operand"):
        s.NonNegative() & "l1(1)"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: s.L1(-1), "l1 weight must be a finite number >= 0"),
        (lambda: s.L2(np.inf), "l2 weight must be a finite number >= 0"),
        (lambda: s.L1("0.1"), "l1 weight must be"),
        (lambda: s.Box(2, 1), "lower=2 is above upper=1"),
        (lambda: s.Box(np.ones((2, 2, 2))), "must be a number or a matrix"),
        (lambda: s.Box(np.nan), "lower is NaN"),
        (lambda: s.Fixed(np.ones(3)), "Fixed takes a matrix of finite numbers"),
        (lambda: s.Fixed([[np.inf]]), "Fixed takes a matrix of finite numbers"),
        (lambda: solvers.HALS(sweeps=-1), "HALS cannot have sweeps=-1: it must be a whole number >= 1, a tuple of one"),
        (lambda: solvers.HALS(sweeps=(2, 2.5)), r"HALS cannot have sweeps=\(2, 2.5\): .*, or None$"),
        (lambda: solvers.HALS(eps="0.1"), "HALS cannot have eps='0.1': it must be a number >= 0"),
        (lambda: solvers.GCD(eps=2), "GCD cannot have eps=2: it must be a number from 0 to below 1"),
        (lambda: solvers.Greedy(polish="never"), "polish='never': it must be one of 'each', 'end', None"),
        (lambda: solvers.Greedy(prune=0), "prune=0: it must be a whole number >= 1, or None"),
        (
            lambda: solvers.ADMM(penalty=(1, 0)),
            r"penalty=\(1, 0\): it must be a number > 0, a tuple of one for each factor, or None",
        ),
        (lambda: solvers.ADMM(enough="x"), "enough='x': it must be a number between 0 and 1"),
        (lambda: solvers.ADMM(replacements=-1), "replacements=-1: it must be a whole number >= 1, or 0"),
        (lambda: resolve("solver", "newton(steps='x')"), "Newton cannot have steps='x': it must be a whole number"),
    ],
)
def test_bad_structures(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- degenerate input --------------------------------------------------------------------------------------

DEGENERATE = {
    "all zero": (np.zeros((4, 3)), 0.0),
    "constant": (np.full((5, 4), 7.0), 0.0),
    "one row": (np.arange(1.0, 6)[None], 0.0),
    "one column": (np.arange(1.0, 6)[:, None], 0.0),
    "one entry": (np.array([[3.0]]), 0.0),
    "zero rows and columns": (np.pad(PLANTED.X, ((2, 1), (1, 2))), None),
    "zero row alone": (np.array([[0.0, 0.0], [1.0, 2.0]]), 0.0),
}


@EACH
@pytest.mark.parametrize("solver", ["hals", "gcd", "mu"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("X, error", DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_data(X, error, solver, store):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="rank 2 is above")
        for rank in (1, 2):
            result = pw.factorize(store(X), rank, solver=solver, init="random", random_state=0, tol=0, max_iter=300)
            assert np.isfinite(result.W).all()
            assert np.isfinite(result.H).all()
            assert result.W.shape == (X.shape[0], rank)
            actual = np.linalg.norm(X - result.W @ result.H) / (np.linalg.norm(X) or 1)
            assert result.relative_error == pytest.approx(actual, abs=1e-9)
            if error is not None:
                assert result.relative_error == pytest.approx(error, abs=1e-5)
    for zero in np.flatnonzero(~X.any(axis=1)):
        assert np.abs(result.W[zero] @ result.H).max() < 1e-25


@PAIRS
@pytest.mark.parametrize("unit", [1e-150, 1e150])
@pytest.mark.parametrize("solver", ["hals", "gcd", "mu"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("init", ["random", "nndsvda", "spa"])
def test_units_do_not_matter(unit, solver, store, init):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {"solver": solver, "init": init, "random_state": 0, "max_iter": 50, "tol": 0}
        plain = pw.factorize(store(X), 3, **options)
        scaled = pw.factorize(store(unit * X), 3, **options)
    assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-6, abs=1e-12)
    assert np.allclose(scaled.W @ scaled.H / unit, plain.W @ plain.H, atol=1e-9)
    assert scaled.certify(store(unit * X)).bound == pytest.approx(plain.certify(store(X)).bound)


@pytest.mark.parametrize("power", [-520, -498, 498, 520])
@pytest.mark.parametrize("solver", ["hals", "gcd", "mu"])
def test_powers_of_two_change_no_bit(power, solver):
    """Penalties follow: |X|^2 grows by 4**power, so the weight of |W| grows by 2**(1.5 power)."""
    unit = 2.0**power
    Y = 255 * X

    def run(X, weight):
        penalised = s.NonNegative() & s.L1(weight)
        options = {"structure_W": penalised, "structure_H": penalised, "solver": solver, "init": "random"}
        return pw.factorize(X, 3, **options, random_state=0, max_iter=20, tol=0)

    plain, scaled = run(Y, 2.0), run(unit * Y, 2.0 * 2.0 ** (1.5 * power))
    assert np.array_equal(np.ldexp(plain.W, power // 2), scaled.W)
    assert scaled.relative_error == plain.relative_error
    assert scaled.data_norm == unit * plain.data_norm
    assert scaled.objective in (plain.objective * unit * unit, np.inf)


@pytest.mark.parametrize("unit", [1e-310, 1e-300, 1e300])
def test_no_unit_is_too_extreme(unit):
    planted = make_parts(30, 20, 3, noise=0.1, random_state=0).X
    model = pw.NMF(3, random_state=0).fit(unit * planted)
    error = np.linalg.norm(planted - (model.transform(unit * planted) / unit) @ model.components_)
    assert model.reconstruction_err_ / unit == pytest.approx(error, rel=1e-2)


@pytest.mark.slow
def test_bounds_set_the_unit_of_their_factor():
    """float32 has no room for a product of two square roots of 1e30 and a known part of size 1."""
    for unit in (1e-30, 1e30):
        for structure in (s.NonNegative() & s.Fixed(PLANTED.H[:2]), s.Box(0, 1)):
            result = pw.factorize((unit * X).astype(np.float32), 3, structure_H=structure, random_state=0, max_iter=500)
            assert result.relative_error < 0.02


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype, size", [(np.float64, 1e200), (np.float32, 1e30)])
def test_numbers_out_of_reach_are_an_error(dtype, size):
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="not a finite number"):
        pw.factorize(X.astype(dtype), 3, init=(size * PLANTED.W, PLANTED.H / size), max_iter=5)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_do_not_matter_in_float32(unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = (unit * X).astype(np.float32)
        result = pw.factorize(single, 3, random_state=0, max_iter=50, tol=0)
    assert result.W.dtype == result.H.dtype == np.float32
    assert result.relative_error < 0.05
    assert np.allclose(result.W.astype(float) @ result.H / unit, X, atol=0.1)


def test_power_of_four_units_give_the_same_bits():
    plain, scaled = (pw.factorize(u * X, 3, random_state=0, max_iter=20, tol=0) for u in (1, 4))
    assert np.array_equal(2 * plain.W, scaled.W)
    assert np.array_equal(2 * plain.H, scaled.H)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(0, 1e6, width=32)),
    st.integers(1, 8),
    st.sampled_from(["hals", "gcd", "mu"]),
    st.sampled_from([np.asarray, sparse.csr_array, sparse.csc_array]),
)
def test_any_nonnegative_matrix_is_taken_apart(X, rank, solver, store):
    result = pw.factorize(store(X), rank, solver=solver, init="random", random_state=0, tol=0, max_iter=15)
    assert (result.W >= 0).all()
    assert (result.H >= 0).all()
    objective = np.array([record.objective for record in result.history])
    assert (np.diff(objective) <= 1e-9 * objective[:-1] + 1e-12 * np.square(X).sum()).all()
    assert 0 <= result.relative_error <= 1 + 1e-6


# -- structures --------------------------------------------------------------------------------------------


def test_none_means_nonnegative_and_free_means_signed():
    signed = np.random.default_rng(0).normal(size=(12, 9))
    result = pw.factorize(signed, 4, structure_H=s.Free(), random_state=0, max_iter=500)
    assert (result.W >= 0).all()
    assert (result.H < 0).any()
    both = pw.factorize(signed, 9, structure_W=s.Free(), structure_H=s.Free(), random_state=0, max_iter=3000, tol=1e-7)
    assert both.relative_error < 1e-3


def test_signed_l1_is_soft_thresholding():
    """With W the identity the answer is known: each entry of X shrunk by the weight."""
    signed = np.random.default_rng(0).normal(size=(4, 9))
    result = pw.factorize(signed, 4, structure_W=s.Fixed(np.eye(4)), structure_H=s.L1(0.5), random_state=0, tol=1e-12)
    assert np.allclose(result.H, np.sign(signed) * np.maximum(np.abs(signed) - 0.5, 0), atol=1e-10)


def test_given_parts_are_held_and_the_others_learnt():
    known = PLANTED.H[:2]
    result = pw.factorize(X, 3, structure_H=s.NonNegative() & s.Fixed(known), random_state=0, tol=1e-7, max_iter=5000)
    assert np.array_equal(result.H[:2], known)
    assert result.relative_error < 1e-4
    assert result.certificate.feasible


def test_single_entries_can_be_held():
    values = np.full(PLANTED.H.shape, np.nan)
    values[1, 4] = 0.123
    result = pw.factorize(X, 3, structure_H=s.NonNegative() & s.Fixed(values), random_state=0, max_iter=50, tol=0)
    assert result.H[1, 4] == 0.123


def test_bounds_as_numbers_and_arrays():
    upper = np.linspace(0.1, 0.9, 20) * np.ones((3, 1))
    by_feature = pw.factorize(X, 3, structure_H=s.Box(None, upper[0]), random_state=0, max_iter=20, tol=0)
    assert (upper >= by_feature.H).all()
    assert repr(resolve("structure", "box(-inf, 2)")) == "Box(-inf, 2)"
    result = pw.factorize(
        X, 3, structure_W=s.Box(0, 0.5), structure_H=s.Box(0.05, upper), random_state=0, max_iter=80, tol=0
    )
    assert result.W.min() >= 0
    assert result.W.max() <= 0.5
    assert result.H.min() >= 0.05
    assert (upper >= result.H).all()


def test_l1_makes_zeros():
    plain = pw.factorize(X, 3, random_state=0)
    sparse_ = pw.factorize(
        X, 3, structure_W=s.NonNegative() & s.L1(0.3), structure_H=s.NonNegative() & s.L1(0.3), random_state=0
    )
    assert (sparse_.H == 0).mean() + (sparse_.W == 0).mean() > (plain.H == 0).mean() + (plain.W == 0).mean()


def test_structures_by_name():
    by_name = pw.factorize(
        X, 3, structure_H="nonnegative & l1(0.1) & box(upper=0.7)", random_state=0, max_iter=9, tol=0
    )
    by_object = pw.factorize(
        X, 3, structure_H=s.NonNegative() & s.L1(0.1) & s.Box(upper=0.7), random_state=0, max_iter=9, tol=0
    )
    assert np.array_equal(by_name.H, by_object.H)
    assert repr(by_name.structures[1]) == "NonNegative() & L1(0.1) & Box(-inf, 0.7)"
    text = pw.factorize(X, 3, solver="hals(sweeps=2)", max_iter=2, tol=0).solver
    assert "sweeps=2" in text


def test_solver_choice_and_reason_are_told():
    result = pw.factorize(X, 3, max_iter=2, tol=0)
    assert result.solver.startswith("HALS(sweeps=(")
    assert "the fastest on most data measured" in result.reason
    assert "sweeps over W and H, since a product with X costs as much as" in result.reason
    reason = pw.factorize(np.ones((40, 30, 20)), 2, max_iter=2, tol=0.5).reason
    assert reason.endswith(
        "; at most 154, 204 and 304 sweeps over A1, A2 and A3, since a product with X costs as much as 300, 400 and "
        "600 of them"
    )
    assert pw.factorize(X, 3, solver=solvers.GCD(eps=0.01), max_iter=2, tol=0).solver == repr(solvers.GCD(eps=0.01))


def test_inner_sweeps_follow_the_cost_of_the_product():
    """Few over a factor that is large against X, many over a small one; a number that was asked for is kept."""

    def sweeps(X, rank, solver="auto"):
        problem = pose(as_data(X), Frobenius(), (s.NonNegative(), s.NonNegative()), rank)
        return choose(problem, solver)[0].sweeps

    over_W, over_H = sweeps(np.ones((1000, 50)), 10)
    assert over_W < over_H
    assert sweeps(np.ones((50, 1000)), 10) == (over_H, over_W)
    assert max(sweeps(sparse.random_array((1000, 50), density=0.02, rng=0).tocsr(), 10)) < over_H
    assert sweeps(X, 3, solvers.HALS(sweeps=2)) == 2
    assert sweeps(X, 3, solvers.HALS(sweeps=(2, 5))) == (2, 5)
    with pytest.raises(IncompatibleError, match="there are 2 factors"):
        sweeps(X, 3, solvers.HALS(sweeps=(2, 5, 1)))
    held = pw.factorize(X, 3, structure_H=s.Fixed(PLANTED.H), tol=0, max_iter=1)
    assert "each row is swept until it is done" in held.reason


def test_sparse_matrices_begin_as_plain_coordinate_descent():
    """One sweep and no extrapolation for three iterations; not under an L1 penalty, where single sweeps lose parts."""
    words = sparse.random_array((90, 80), density=0.04, rng=0).tocsr()

    def same(X, n_iter, **asked):
        asked |= {"random_state": 0, "init": "random", "tol": 0, "max_iter": n_iter}
        return np.array_equal(*(pw.factorize(X, 3, solver=solver, **asked).W for solver in ("hals", "cd")))

    assert [same(words, n_iter) for n_iter in (1, 3, 4)] == [True, True, False]
    assert not same(X, 1)
    assert not same(words, 1, structure_H="nonnegative & l1(0.01)")


def test_dead_parts_are_reported():
    result = pw.factorize(X, 3, structure_W=s.NonNegative() & s.L1(1e6), init="random", random_state=0, max_iter=5)
    assert result.certificate.zero_components == (0, 1, 2)
    assert "parts that are zero, from 1: 1, 2, 3" in str(result.certificate)
    one = pw.factorize(X, 3, init=(PLANTED.W * [1, 0, 1], PLANTED.H * [[1], [0], [1]]), max_iter=3, tol=0)
    assert one.certificate.zero_components == (2,)  # the smallest, so the last
    assert pw.factorize(X, 3, random_state=0).certificate.zero_components == ()


# -- conventions -------------------------------------------------------------------------------------------


def test_parts_are_sorted_by_their_share():
    result = pw.factorize(X, 3, random_state=0)
    size = np.linalg.norm(result.W, axis=0) * np.linalg.norm(result.H, axis=1)
    assert (np.diff(size) <= 0).all()
    unsorted = pw.factorize(X, 3, random_state=0, sort=False)
    assert {tuple(part) for part in unsorted.H} == {tuple(part) for part in result.H}


@pytest.mark.parametrize(
    "normalize, factor, norm",
    [("W", "W", 2), ("H", "H", 2), (("H", "l1"), "H", 1), (("W", "max"), "W", np.inf)],
)
@pytest.mark.parametrize("unit", [1.0, 1e20])
def test_normalize(normalize, factor, norm, unit):
    plain = pw.factorize(unit * X, 3, random_state=0, normalize=None, sort=False)
    result = pw.factorize(unit * X, 3, random_state=0, normalize=normalize, sort=False)
    A = result.W if factor == "W" else result.H.T
    assert np.linalg.norm(A, norm, axis=0) == pytest.approx(1)
    assert np.allclose(result.W @ result.H / unit, plain.W @ plain.H / unit)


def test_balanced_by_default():
    result = pw.factorize(X, 3, random_state=0)
    assert np.linalg.norm(result.W, axis=0) == pytest.approx(np.linalg.norm(result.H, axis=1))


def test_sort_and_scale_leave_structures_alone():
    given = s.NonNegative() & s.Fixed(PLANTED.H[:2])
    result = pw.factorize(X, 3, structure_H=given, random_state=0, max_iter=20, tol=0)
    assert np.array_equal(result.H[:2], PLANTED.H[:2])


def test_repr_is_short():
    assert re.match(r"<partwise result: 30 x 20 in 3 parts, relative error", repr(pw.factorize(X, 3)))


def test_parts_that_come_out_zero_are_told_of(recwarn):
    """Unless they were asked for: by penalties, by a solver that may stop short of the rank, or by too many parts."""
    T = np.random.default_rng(0).poisson(3 * make_cp((12, 10, 8), 3, random_state=5).X)
    words = {"loss": "kl", "init": "random", "random_state": 0}
    start = [np.random.RandomState(0).uniform(size=(n, 3)) for n in T.shape]
    start[0][:, 2] = 0
    with pytest.warns(UserWarning, match=r"^1 of the 3 parts is zero .*Take 2 parts, or try other starts"):
        result = pw.factorize(T, 3, loss="kl", init=start, solver="mu", max_iter=50)
    assert result.certificate.zero_components == (2,)
    recwarn.clear()
    heavy = s.NonNegative() & s.L1(100.0)
    pw.factorize(T, 3, **words, structures=[heavy] * 3, max_iter=500)
    pw.factorize(np.ones((9, 8)), 3, solver="greedy")
    with pytest.warns(UserWarning, match="rank 6 is above"):
        pw.factorize(np.eye(5), 6, loss="kl", init=(np.eye(5, 6), np.eye(6, 5)))
    assert not [warning for warning in recwarn if "zero" in str(warning.message)]
