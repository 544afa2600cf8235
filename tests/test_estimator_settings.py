"""What the estimators take beyond scikit-learn's parameters, the same words for all of them, and what they score."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import partwise as pw
from partwise import solvers
from partwise.datasets import make_cp, make_parts

from .covering import EACH

X = make_parts(40, 12, 3, noise=0.05, random_state=0).X
CUBE = make_cp((8, 6, 5), 2, noise=0.05, random_state=0).X
NOT_IN_ESTIMATORS = {"X", "rank", "symmetric", "structures", "mask", "weights", "modes"}  # said in docs/scikit-learn.md

MODELS = {
    "NMF": (lambda **words: pw.NMF(3, **words), X),
    "NTF": (lambda **words: pw.NTF(2, **words), CUBE),
    "Dictionary": (lambda **words: pw.Dictionary(4, nonzeros=2, **words), X),
}
MODEL = pytest.mark.parametrize("make, X", MODELS.values(), ids=MODELS)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_everything_that_factorize_takes_is_here():
    assert set(inspect.signature(pw.factorize).parameters) - set(pw.NMF().get_params()) == NOT_IN_ESTIMATORS
    alike = set(pw.NMF().get_params()) - {"beta_loss", "alpha_W", "alpha_H", "l1_ratio", "shuffle"}
    assert alike - set(pw.NTF(1).get_params()) == {"structure_W", "structure_H"}
    missing = alike - set(pw.Dictionary().get_params())
    assert missing == {"structure_W", "structure_H", "loss", "normalize"}  # the atoms fix them


@MODEL
def test_every_parameter_is_documented(make, X):
    model = make()
    listed = re.search(r"Parameters\n-+\n(.*?)\nAttributes\n", inspect.getdoc(type(model)), re.S)[1]
    names = {
        name for line in re.findall(r"^(\w.*)$", listed, re.M) for name in re.findall(r"\w+", line.split(" : ")[0])
    }
    assert names == set(model.get_params())


@MODEL
def test_clones_and_pickles_keep_every_setting(make, X, tmp_path):
    words = {"time_limit": 60.0, "target": 1e-9, "checkpoint": tmp_path / "run", "sort": True, "random_state": 0}
    model = make(**words)
    assert {name: value for name, value in clone(model).get_params().items() if name in words} == words
    fitted = pickle.loads(pickle.dumps(model.set_params(checkpoint=None, max_iter=5).fit(X)))
    assert fitted.get_params()["time_limit"] == 60
    assert np.array_equal(fitted.transform(X), model.transform(X))


@MODEL
def test_limits(make, X):
    assert make(time_limit=1e-9, tol=0, random_state=0).fit(X).result_.status == "time_limit"
    assert make(target=1e9, tol=0, random_state=0).fit(X).result_.status == "target"
    assert make(ftol=1e9, tol=0, random_state=0).fit(X).result_.status == "ftol"
    for words in (
        {"time_limit": 0},
        {"target": "low"},
        {"ftol": -1.0},
        {"progress": "bar"},
        {"sort": 2},
        {"checkpoint": 3},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(words))}' parameter of .* must be"):
            make(**words).fit(X)


@MODEL
def test_a_run_goes_on_from_its_checkpoint(make, X, tmp_path):
    path = str(tmp_path / "run.checkpoint")
    words = {"tol": 0, "random_state": 0, "n_init": 1}
    make(max_iter=4, checkpoint=(path, 0.0), **words).fit(X)
    resumed, whole = (make(max_iter=8, **words, **more).fit(X) for more in ({"resume": path}, {}))
    for one, other in zip(resumed.result_.factors, whole.result_.factors, strict=True):
        assert np.array_equal(one, other)


@MODEL
def test_a_bar_is_drawn_where_it_is_asked_for(make, X, capsys):
    for progress, drawn in ((True, True), (False, False)):
        make(progress=progress, max_iter=3, random_state=0).fit(X)
        assert bool(capsys.readouterr().err) == drawn


def test_scale_and_order():
    plain = pw.NMF(3, init="random", random_state=2, tol=0, max_iter=50)
    W = plain.fit_transform(X)
    model = clone(plain).set_params(normalize=("H", "l1"), sort=True)
    V = model.fit_transform(X)
    assert np.allclose(model.components_.sum(axis=1), 1)
    assert np.allclose(V @ model.components_, W @ plain.components_)
    assert np.all(np.diff(model.result_.weights) <= 0)
    assert np.any(np.diff(plain.result_.weights) > 0)
    assert np.allclose(model.set_params(tol=1e-8).transform(X) @ model.components_, V @ model.components_, atol=0.05)
    with pytest.raises(ValueError, match="normalize must be 'balanced', None, 'W', 'H'"):
        clone(plain).set_params(normalize="rows").fit(X)


@pytest.mark.parametrize("normalize", [False, "balanced", ("A2", "l1"), None])
def test_scale_of_tensors(normalize):
    model = pw.NTF(2, normalize=normalize, random_state=0).fit(CUBE)
    assert np.array_equal(model.weights_, [1, 1])
    assert all(np.array_equal(A, B) for A, B in zip(model.factors_, model.result_.factors, strict=True))
    if normalize == ("A2", "l1"):
        assert np.allclose(model.factors_[1].sum(axis=0), 1)
    assert np.allclose(model.inverse_transform(model.transform(CUBE)), model.result_.reconstruct(), atol=0.02)


# -- score ---------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("loss", ["frobenius", "kl", "itakura-saito", 1.5, "l1", "huber(0.1)"])
@pytest.mark.parametrize("holes", [False, True])
def test_the_score_of_what_was_fitted_is_what_the_result_explains(loss, holes):
    Y = X + 0.1
    if holes:
        Y[np.random.default_rng(0).uniform(size=Y.shape) < 0.1] = np.nan
    model = pw.NMF(3, loss=loss, random_state=0, max_iter=500).fit(Y)
    assert model.score(Y) == pytest.approx(model.result_.explained, abs=2e-3)
    assert model.score(Y) <= 1


def test_the_score_is_the_explained_share():
    model = pw.NMF(3, random_state=0).fit(X[:30])
    new = X[30:]
    left = new - model.inverse_transform(model.transform(new))
    assert model.score(new) == pytest.approx(1 - (left**2).sum() / (new**2).sum())
    assert model.score(sparse.csr_array(new)) == pytest.approx(model.score(new))
    weights = np.arange(10.0)
    counted = 1 - weights @ (left**2).sum(axis=1) / (weights @ (new**2).sum(axis=1))
    assert model.score(new, sample_weight=weights) == pytest.approx(counted)
    assert model.score(np.vstack([new, new + 5]), sample_weight=[1] * 10 + [0] * 10) == pytest.approx(model.score(new))
    with pytest.raises(ValueError, match="no entry of X"):
        model.score(np.full((2, 12), np.nan))


@MODEL
def test_scores_in_cross_validation(make, X):
    scores = cross_val_score(make(random_state=0, max_iter=200), X, cv=2)
    assert np.all((scores > 0.5) & (scores <= 1))


def test_a_grid_search_without_a_scorer():
    Y = X + np.random.default_rng(0).normal(0, 0.02, X.shape).clip(0)
    penalised = {"alpha_W": [0.0, 1.0], "l1_ratio": [1.0]}
    search = GridSearchCV(pw.NMF(3, random_state=0, max_iter=100), penalised, cv=2).fit(Y)
    assert search.best_params_["alpha_W"] == 0  # a penalty that leaves nothing of the model explains nothing
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(0)
    holed = np.where(np.random.default_rng(1).uniform(size=Y.shape) < 0.1, np.nan, Y)
    assert GridSearchCV(pw.NMF(random_state=0), {"n_components": [1, 3]}, cv=2).fit(holed).best_score_ > 0.9


def test_names_of_parameters_that_no_estimator_has():
    """One sentence of Python's, which names the parameter."""
    for make, _ in MODELS.values():
        with pytest.raises(TypeError, match="symmetric"):
            make(symmetric=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert pw.NMF(3, solver=solvers.HALS(), random_state=0, tol=1e-2).fit(X).result_.converged
