"""Tensors from the front door to the result: odd shapes, scale and order of parts, bits, pages, files."""

import numpy as np
import pytest

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_cp
from partwise.metrics import factor_match

from .conformance.tables import sparse_tensor
from .covering import EACH

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
PLANTED = make_cp((12, 10, 8), 3, zeros=0.3, noise=0.02, random_state=0)
LOSSES = ["frobenius", "kl", 1.5, "l1"]
losses = pytest.mark.parametrize("loss", LOSSES)


def counts(shape):
    """With a slice of zeros in the first mode, where it has several."""
    T = np.random.default_rng(len(shape)).poisson(2.0, size=shape).astype(float)
    T[1:2] = 0
    return T


def model(factors):
    letters = "abcdef"[: len(factors)]
    return np.einsum(",".join(f"{letter}k" for letter in letters) + f"->{letters}", *factors)


SHAPES = {
    "order 3": (6, 5, 4),
    "order 4": (4, 3, 3, 2),
    "order 5": (3, 2, 3, 2, 3),
    "order 6": (2, 3, 2, 2, 2, 3),
    "a mode of size 1": (5, 1, 4),
    "two modes of size 1": (1, 5, 1),
    "a rank above the size of a mode": (2, 9, 8),
}


@EACH
@pytest.mark.filterwarnings("ignore:rank . is above")  # the number of fibers of the smallest
@losses
@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, sparse_tensor], ids=["dense", "Fortran", "sparse"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_odd_shapes_get_right_answers(shape, store, loss):
    """What the result says is true of the model formed in full, and it is better than one part."""
    T, rank = counts(shape), 4 if max(shape) > 8 else 2
    result, one = (pw.factorize(store(T), r, loss=loss, random_state=0, max_iter=200) for r in (rank, 1))
    assert [A.shape for A in result.factors] == [(dim, rank) for dim in shape]
    assert all(np.isfinite(A).all() and (A >= 0).all() for A in result.factors)
    assert result.fit == pytest.approx(result.loss.value(T, model(result.factors)), rel=1e-6, abs=1e-9)
    assert result.fit <= one.fit * (1 + 1e-6) + 1e-9
    assert result.certificate.feasible


@pytest.mark.parametrize("store", [np.asarray, sparse_tensor], ids=["dense", "sparse"])
@losses
def test_nothing_comes_of_nothing(store, loss):
    result = pw.factorize(store(np.zeros((4, 3, 2))), 2, loss=loss, random_state=0)
    assert model(result.factors).max() <= 1e-9


@losses
def test_units_do_not_matter(loss):
    T = PLANTED.X if loss != "kl" else np.maximum(PLANTED.X, 0)
    one = pw.factorize(T, 3, loss=loss, random_state=0)
    for unit in (2.0**-400, 2.0**400):
        other = pw.factorize(unit * T, 3, loss=loss, random_state=0)
        assert other.relative_error == pytest.approx(one.relative_error, rel=1e-9)
        assert factor_match(one, other) == pytest.approx(1)


@pytest.mark.slow_cases("0|2")
@pytest.mark.parametrize("mode", range(3))
def test_every_mode_may_be_held_or_shaped(mode):
    truth = PLANTED.factors[mode]
    held = [s.Fixed(truth) if m == mode else None for m in range(3)]
    assert np.array_equal(pw.factorize(PLANTED.X, 3, structures=held, random_state=0).factors[mode], truth)
    partly = [s.NonNegative() & s.Fixed(truth[:, :1]) if m == mode else None for m in range(3)]
    result = pw.factorize(PLANTED.X, 3, structures=partly, n_init=4, random_state=0)
    assert np.array_equal(result.factors[mode][:, 0], truth[:, 0])
    assert factor_match(PLANTED, result) > 0.98
    shaped = pw.factorize(
        PLANTED.X, 3, structures=[s.Simplex(per="component") if m == mode else None for m in range(3)], random_state=0
    )
    assert shaped.factors[mode].sum(axis=0) == pytest.approx(1)
    assert shaped.relative_error < 0.05


def test_scale_and_order_of_parts():
    results = {
        how: pw.factorize(PLANTED.X, 3, normalize=how, random_state=0) for how in ("balanced", "A2", ("A3", "l1"))
    }
    full = model(results["balanced"].factors)
    for result in results.values():
        assert np.allclose(model(result.factors), full, atol=1e-6)
        assert np.all(np.diff(result.weights) <= 0)  # the largest first
    balanced, second, third = (result.factors for result in results.values())
    norms = [np.linalg.norm(A, axis=0) for A in balanced]
    assert np.allclose(norms, norms[0])
    assert np.linalg.norm(second[1], axis=0) == pytest.approx(1)
    assert third[2].sum(axis=0) == pytest.approx(1)


def test_starts_and_results_as_starts():
    several = pw.factorize(PLANTED.X, 3, init="random", n_init=4, random_state=0)
    assert len(several.objectives) == 4
    assert several.objective == min(several.objectives)
    again = pw.factorize(PLANTED.X, 3, init=several, tol=1e-7, random_state=0)
    assert again.objective <= several.objective
    given = pw.factorize(PLANTED.X, 3, init=[A + 0.1 for A in PLANTED.factors], random_state=0)
    assert factor_match(PLANTED, given) > 0.99


def test_what_a_result_of_a_tensor_keeps(tmp_path):
    result = pw.factorize(PLANTED.X, 3, modes=["a", "b", "c"], random_state=0)
    back = pw.load(result.save(tmp_path / "t.partwise"))
    assert all(map(np.array_equal, result.factors, back.factors))
    assert [mode.name for mode in back.modes] == ["a", "b", "c"]
    assert back.certificate == result.certificate
    assert np.allclose(result.reconstruct(), model(result.factors))
    with pytest.raises(
        AttributeError, match=r"a pair of W and H is for matrices, and X has 3 modes: see result\.named"
    ):
        _ = result.W


def test_a_callback_and_a_target_end_a_run():
    stopped = pw.factorize(
        PLANTED.X, 3, init="random", callbacks=[lambda record, _: record.n_iter == 3], random_state=0
    )
    assert (stopped.status, stopped.n_iter) == ("callback", 3)
    aimed = pw.factorize(PLANTED.X, 3, init="random", target=stopped.objective, random_state=0)
    assert aimed.status == "target"
    assert aimed.n_iter <= 3


def test_where_tensors_begin(monkeypatch):
    """Least squares one part at a time, unless that takes long; with parts given, and under other losses, at random."""

    def first(**stated):
        return pw.factorize(PLANTED.X, 3, max_iter=1, tol=1.0, random_state=0, **stated).history[0].objective

    greedy, random = first(init="greedy"), first(init="random")
    assert first() == greedy < random
    monkeypatch.setitem(pw.factorize.__globals__, "MOST_GREEDY", 10)
    assert first() == random
    monkeypatch.undo()
    held = [None, None, s.NonNegative() & s.Fixed(PLANTED.factors[2][:, :1])]
    assert first(structures=held) == first(structures=held, init="random")
    assert first(loss=1.5) == first(loss=1.5, init="random")
