"""The loop: when a run stops and what it leaves behind."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_parts, make_sparse_codes

X = make_parts(40, 30, 4, noise=0.1, random_state=0).X


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pw.factorize(*args, random_state=0, **options)


@pytest.mark.parametrize("solver", ["hals", "gcd", "mu"])
def test_tol_means_the_same_for_every_solver(solver):
    result = quiet(X, 4, solver=solver, tol=1e-3, max_iter=5000)
    assert result.converged
    assert result.certificate.stationary
    assert result.certificate.stationarity == result.history[-1].stationarity <= 1e-3  # recomputed, same bits


def test_one_iteration_is_never_converged():
    with pytest.warns(ConvergenceWarning):
        result = pw.factorize(np.ones((4, 3)), 1, max_iter=1)
    assert result.status == "max_iter"
    assert result.n_iter == 1


def test_warning_says_how_far_off_it_is_and_what_to_do():
    sentence = r"^Maximum number of iterations 3 reached\. Increase it to improve convergence\. Stationarity is"
    with pytest.warns(ConvergenceWarning, match=sentence) as caught:
        result = pw.factorize(X, 4, max_iter=3, tol=1e-8, random_state=0)
    text = str(caught[0].message)
    assert f"{result.history[-1].stationarity:.1e}" in text
    assert "raise max_iter, or loosen tol" in text
    assert not result.converged


def test_no_warning_when_nothing_was_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pw.factorize(X, 4, max_iter=3, tol=0.0).status == "max_iter"


def test_history_tells_time_objective_and_stationarity():
    result = quiet(X, 4, max_iter=20, tol=0)
    assert [record.n_iter for record in result.history] == list(range(21))
    times = [record.time for record in result.history]
    assert times == sorted(times)
    assert result.objective == result.history[-1].objective
    assert result.objective == pytest.approx(0.5 * np.square(X - result.W @ result.H).sum(), rel=1e-10)
    assert result.fit == pytest.approx(result.objective, rel=1e-10)


def test_target_and_time_limit():
    full = quiet(X, 4, max_iter=100)
    middle = full.history[5].objective
    early = quiet(X, 4, target=middle)
    assert early.status == "target"
    assert early.objective <= middle * (1 + 1e-9)  # the last record is computed afresh
    assert early.n_iter < full.n_iter
    assert quiet(X, 4, time_limit=1e-9, n_init=50).status == "time_limit"
    assert len(quiet(X, 4, time_limit=1e-9, n_init=50).objectives) == 1


def test_a_run_ends_where_its_error_hardly_falls():
    full = quiet(X, 4, max_iter=100, tol=0)
    errors = np.sqrt([record.objective for record in full.history])
    falls = {k: (errors[k - 10] - errors[k]) / errors[0] for k in (20, 30)}
    early = quiet(X, 4, tol=0, ftol=(falls[20] + falls[30]) / 2)
    assert (early.status, early.n_iter, early.converged) == ("ftol", 30, False)
    assert early.objective == pytest.approx(full.history[30].objective, rel=1e-10)
    assert "has not converged, and ended where its error hardly fell" in early._repr_html_()


def test_a_run_that_is_stationary_where_its_error_hardly_falls_has_converged():
    result = quiet(X, 4, tol=1e-2, ftol=1e9)
    assert result.certificate.stationarity <= 1e-2
    assert result.converged


def test_callbacks_see_records_and_cannot_touch_the_run():
    seen = []

    def callback(record, factors):
        seen.append(record)
        with pytest.raises(ValueError, match="read-only"):
            factors[0][:] = 0
        assert factors[0].shape == (40, 4)
        return record.n_iter == 3

    result = quiet(X, 4, callbacks=[callback])
    assert result.status == "callback"
    assert result.n_iter == 3
    assert tuple(seen)[:-1] == result.history[:-1]  # the last line is renewed at the end
    assert [record.n_iter for record in seen] == [0, 1, 2, 3]
    for truth in (np.bool_(True), 1):
        assert quiet(X, 4, callbacks=lambda record, factors, truth=truth: truth).status == "callback"
    assert len(quiet(X, 4, init="random", n_init=5, callbacks=lambda *_: True).objectives) == 1
    plain = quiet(X, 4, max_iter=3, tol=0)
    assert np.array_equal(plain.W, result.W)


def test_the_last_word_is_recomputed():
    """Cut off at any moment, status, history and certificate agree."""
    for max_iter in range(2, 30):
        result = quiet(X, 4, init="random", max_iter=max_iter, tol=1e-3)
        assert result.certificate.stationarity == result.history[-1].stationarity
        assert result.converged == result.certificate.stationary


def test_generators_are_seeds_too():
    one, two = (
        pw.factorize(X, 4, init="random", max_iter=2, tol=0, random_state=np.random.default_rng(3)).W for _ in "ab"
    )
    assert np.array_equal(one, two)


def test_best_start_is_kept():
    result = quiet(X, 4, init="random", n_init=5, max_iter=5, tol=0)
    assert len(result.objectives) == 5
    assert result.objective == min(result.objectives)
    assert len(set(result.objectives)) == 5


def test_warm_start_from_a_result_or_arrays():
    first = quiet(X, 4, tol=1e-5, max_iter=2000)
    again = quiet(X, 4, init=first, tol=1e-5)
    assert again.n_iter <= 10
    assert again.objective <= first.objective * (1 + 1e-12)
    arrays = quiet(X, 4, init=(first.W, first.H), tol=1e-5)
    assert np.array_equal(arrays.W, again.W)


def test_same_seed_same_bits():
    one, two = (quiet(X, 4, init="random", max_iter=10) for _ in range(2))
    assert np.array_equal(one.W, two.W)
    assert np.array_equal(one.H, two.H)


@dataclass(frozen=True)
class Misjudging(pw.solvers.HALS):
    """Tells another stationarity than the one it sees; `factors` by iteration, the last of them from then on."""

    factors: tuple = (1.0,)

    def step(self, problem, state):
        step = super().step(problem, state)
        state.told = getattr(state, "told", iter(self.factors))
        return step._replace(stationarity=step.stationarity * next(state.told, self.factors[-1]))


@pytest.mark.parametrize("factors", [(1e9,), (1, 1, 1, 1e-9, 1), (0.0, 0.0, 1e-9, 1), (np.nan,)], ids=str)
def test_wrong_estimates_do_not_keep_a_run_from_ending(factors):
    settings = {"init": "random", "tol": 1e-5, "max_iter": 5000}
    plain = quiet(X, 4, solver="hals", **settings)
    result = quiet(X, 4, solver=Misjudging(factors=factors), **settings)
    assert result.converged
    assert result.certificate.stationarity <= 1e-5
    assert result.n_iter <= plain.n_iter + 50
    assert [r.objective for r in result.history[: plain.n_iter]] == [r.objective for r in plain.history[:-1]]


def test_a_limit_that_ends_the_start_is_told():
    with pytest.warns(ConvergenceWarning, match="ended the run before its first iteration: the factors are those of"):
        assert pw.factorize(X, 4, time_limit=1e-9).n_iter == 0


def test_a_callback_can_end_a_run_before_its_first_iteration():
    result = quiet(X, 4, callbacks=lambda record, factors: True)
    assert (result.status, result.n_iter) == ("callback", 0)
    start = result.objective
    assert quiet(X, 4, target=start).n_iter == 0


@pytest.mark.slow
def test_a_search_ends_where_the_fit_is_what_tol_leaves():
    planted = make_sparse_codes(200, 12, 16, nonzeros=2, random_state=0).X
    atoms = {"structure_W": s.Sparse(2), "structure_H": s.UnitNorm(), "n_init": 1}
    loose, tight = (quiet(planted, 16, tol=tol, **atoms) for tol in (1e-3, 1e-8))
    assert loose.converged
    assert loose.relative_error < 1e-3
    assert loose.n_iter < tight.n_iter


@pytest.mark.parametrize(
    "limits, message",
    [
        ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
        ({"max_iter": 2.5}, "max_iter must be a whole number >= 1"),
        ({"tol": -1}, "tol must be a number >= 0"),
        ({"tol": "a"}, "tol must be a number >= 0"),
        ({"target": "a"}, "target must be a number"),
        ({"ftol": -1}, "ftol must be a number >= 0"),
        ({"tol": float("nan")}, "tol must be a number >= 0"),
        ({"time_limit": 0}, "time_limit must be a number of seconds > 0"),
        ({"n_init": 0}, "n_init must be a whole number >= 1"),
        ({"init": "nndsvda", "n_init": 2}, "gives the same start every time"),
    ],
)
def test_bad_limits(limits, message):
    with pytest.raises(ValueError, match=message):
        pw.factorize(X, 4, **limits)
