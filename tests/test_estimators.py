"""The drop-in as people use it, and what it adds."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.decomposition
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import partwise as pw
from partwise import solvers
from partwise import structures as s
from partwise.datasets import load_digits, make_parts

PLANTED = make_parts(40, 12, 3, noise=0.05, random_state=0)
X = PLANTED.X
LITERAL = {"cd": solvers.HALS(sweeps=1, extrapolate=False), "mu": solvers.MU()}  # scikit-learn's updates
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_every_parameter_of_scikit_learn_is_here_with_its_default():
    theirs, ours = sklearn.decomposition.NMF().get_params(), pw.NMF().get_params()
    assert theirs.pop("solver") == "cd"
    assert theirs.pop("n_components") == "auto"  # which is the number of features there, and None here
    assert {name: ours[name] for name in theirs} == theirs
    assert ours["solver"] == "auto"
    assert ours["n_components"] is None
    small = X[:, :4]
    assert pw.NMF().fit(small).n_components_ == sklearn.decomposition.NMF().fit(small).n_components_ == 4


def test_attributes_of_scikit_learn_are_here():
    theirs, ours = (
        cls(3, random_state=0).fit(pd.DataFrame(X, columns=list("abcdefghijkl")))
        for cls in (sklearn.decomposition.NMF, pw.NMF)
    )
    public = [name for name in vars(theirs) if name.endswith("_") and not name.startswith("_")]
    assert set(public) >= {"components_", "reconstruction_err_", "n_iter_", "feature_names_in_"}
    for name in public:
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
    assert ours.components_.flags.c_contiguous
    assert ours.reconstruction_err_ == pytest.approx(np.linalg.norm(X - ours.transform(X) @ ours.components_), rel=1e-3)


@pytest.mark.parametrize("alpha_W, alpha_H, l1_ratio", [(0, 0, 0), (0.01, "same", 0.3), (0.005, 0.003, 1.0)])
@pytest.mark.parametrize("solver", LITERAL)
def test_iterates_are_scikit_learns(solver, alpha_W, alpha_H, l1_ratio):
    """The same start, the same updates: after a few iterations the factors agree to rounding. (But for parts whose
    other half has died: scikit-learn leaves them where they were, at the price of their penalty; we take 0.)"""
    rng = np.random.RandomState(0)
    W, H = rng.uniform(size=(40, 3)), rng.uniform(size=(3, 12))
    options = {
        "init": "custom",
        "solver": solver,
        "max_iter": 7,
        "tol": 0,
        "alpha_W": alpha_W,
        "alpha_H": alpha_H,
        "l1_ratio": l1_ratio,
    }
    theirs = sklearn.decomposition.non_negative_factorization(X, W.copy(), H.copy(), 3, **options)
    ours = pw.non_negative_factorization(X, W, H, 3, **options | {"solver": LITERAL[solver]})
    alive = theirs[0].any(axis=0) & theirs[1].any(axis=1)
    assert alive.sum() >= 2
    assert np.allclose(ours[0], theirs[0] * alive, atol=1e-10)
    assert np.allclose(ours[1], theirs[1] * alive[:, None], atol=1e-10)
    assert ours[2] == theirs[2]


def test_random_starts_are_scikit_learns():
    from sklearn.decomposition._nmf import _initialize_nmf

    W, H = _initialize_nmf(X, 3, init="random", random_state=5)
    start = []
    pw.NMF(3, init="random", random_state=5, max_iter=1, callbacks=[lambda r, f: start.append(f)]).fit(X)
    assert np.allclose(start[0][0], W, rtol=1e-14)
    assert np.allclose(start[0][1], H.T, rtol=1e-14)


@pytest.mark.parametrize("init", ["nndsvd", "nndsvda"])
def test_nndsvd_starts_are_scikit_learns_for_data_up_to_one(init):
    from sklearn.decomposition._nmf import _initialize_nmf

    Y = X / X.max()
    W, H = _initialize_nmf(Y, 3, init=init, random_state=5)
    start = []
    pw.NMF(3, init=init, random_state=5, max_iter=1, callbacks=[lambda r, f: start.append(f)]).fit(Y)
    assert np.allclose(start[0][0], W, atol=1e-10)
    assert np.allclose(start[0][1], H.T, atol=1e-10)


@pytest.mark.slow
def test_as_good_a_fit_as_scikit_learn():
    """From the same kind of start; the local optima differ by a little either way."""
    digits = load_digits().X
    theirs = sklearn.decomposition.NMF(10, max_iter=200, tol=0).fit(digits)
    ours = pw.NMF(10, max_iter=200, tol=0).fit(digits)
    assert ours.reconstruction_err_ <= theirs.reconstruction_err_ * 1.003


# -- surroundings --------------------------------------------------------------------------------------------


def test_clone_and_pickle():
    model = pw.NMF(3, structure_H=s.L1(0.1), solver=solvers.GCD(eps=0.01), random_state=0)
    twin = clone(model)
    assert twin.get_params()["solver"] == solvers.GCD(eps=0.01)
    fitted = model.fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.transform(X), fitted.transform(X))
    assert again.result_.objective == fitted.result_.objective
    assert np.array_equal(twin.fit(X).components_, fitted.components_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_set_output(frame):
    names = [f"feature {j}" for j in range(X.shape[1])]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = pw.NMF(3, random_state=0)
    assert np.allclose(model.fit_transform(table), pw.NMF(3, random_state=0).fit_transform(X))
    assert list(model.feature_names_in_) == names
    assert list(model.get_feature_names_out()) == ["nmf0", "nmf1", "nmf2"]
    library = "pandas" if frame is pd.DataFrame else "polars"
    out = pw.NMF(3, random_state=0).set_output(transform=library).fit_transform(table)
    assert isinstance(out, frame)
    assert list(out.columns) == ["nmf0", "nmf1", "nmf2"]


def test_frames_in_factorize():
    table = pd.DataFrame(X, columns=list("abcdefghijkl"))
    assert np.allclose(pw.factorize(table, 3, random_state=0).H, pw.factorize(X, 3, random_state=0).H)
    assert np.allclose(pw.factorize(pl.DataFrame(X), 3, random_state=0).H, pw.factorize(X, 3, random_state=0).H)


def test_pipeline_and_grid_search():
    digits = load_digits().X[:300]
    labels = np.arange(300) % 2
    search = GridSearchCV(
        make_pipeline(pw.NMF(random_state=0, max_iter=20), LogisticRegression()),
        {"nmf__n_components": [3, 5], "nmf__alpha_W": [0, 0.001]},
        cv=2,
    ).fit(digits, labels)
    assert search.best_params_["nmf__n_components"] in (3, 5)


@pytest.mark.slow
def test_float32_stays_float32():
    model = pw.NMF(3, random_state=0)
    assert model.fit_transform(X.astype(np.float32)).dtype == np.float32
    assert model.components_.dtype == np.float32
    assert model.transform(X).dtype == np.float64


# -- transform -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("alpha_W", [0, 0.01])
def test_rows_do_not_depend_on_their_company(store, alpha_W):
    model = pw.NMF(3, random_state=0, alpha_W=alpha_W, l1_ratio=0.5).fit(X)
    whole = model.transform(store(X))
    for rows in ([4], [11, 4], range(20)):
        part = model.transform(store(X[list(rows)]))
        assert np.allclose(part, whole[list(rows)], rtol=1e-12, atol=1e-14)
    mixed = np.vstack([1e8 * X[:3], X[4:5]])
    assert np.allclose(model.transform(store(mixed))[3], whole[4], rtol=1e-9)


@pytest.mark.slow
def test_zero_rows_and_tiny_rows_finish():
    model = pw.NMF(3, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = np.vstack([np.zeros(12), X[:2]]).astype(np.float32)
        assert not model.transform(rows)[0].any()
        tiny = np.vstack([X[0], 1e-24 * X[1]]).astype(np.float32)
        alone = model.transform(tiny[1:])
    assert np.allclose(model.transform(tiny)[1] / 1e-24, alone[0] / 1e-24, rtol=1e-3, atol=1e-3)
    signed = pw.factorize(rows, 3, structure_W=s.Free(), structure_H=s.Fixed(model.components_), random_state=0)
    assert signed.converged


def test_transform_solves_nonnegative_least_squares():
    from scipy.optimize import nnls

    model = pw.NMF(3, random_state=0, tol=1e-10, max_iter=10000).fit(X)
    new = make_parts(10, 12, 3, random_state=9).X
    expected = np.array([nnls(model.components_.T, row)[0] for row in new])
    assert np.allclose(model.transform(new), expected, atol=1e-8)


def test_transform_of_the_training_data_reproduces_W():
    model = pw.NMF(3, random_state=0, tol=1e-9, max_iter=20000)
    W = model.fit_transform(X)
    assert model.result_.converged
    assert np.allclose(model.transform(X), W, atol=1e-6)


def test_transform_keeps_structures_that_make_sense_for_new_rows():
    bounded = pw.NMF(3, structure_W=s.Box(0, 0.2), random_state=0, max_iter=50).fit(X)
    assert bounded.transform(5 * X).max() <= 0.2
    held = pw.NMF(3, structure_W=s.Fixed(PLANTED.W[:, :1]), random_state=0, max_iter=50).fit(X)
    with pytest.warns(UserWarning, match="speaks of the training samples and has no meaning for new ones"):
        W = held.transform(X[:5])
    assert W.shape == (5, 3)


def bad_values():
    for value, said in ((np.nan, "X contains 1 NaN entry"), (np.inf, "X contains 1 infinite entry")):
        spoilt = X.copy()
        spoilt[2, 3] = value
        for store in (np.asarray, sparse.csr_array, pd.DataFrame):
            yield store(spoilt), said
    yield [["a", "b"]], "X must be a matrix of numbers"
    yield np.ma.masked_greater(X, X.mean()), "X has masked entries"


DOORS = {
    "NMF.fit": lambda X: pw.NMF(2, missing=None).fit(X),
    "NMF.transform": lambda bad: pw.NMF(2, missing=None, max_iter=2).fit(X).transform(bad),
    "Dictionary.fit": lambda X: pw.Dictionary(2, missing=None, nonzeros=1).fit(X),
    "Dictionary.transform": lambda bad: pw.Dictionary(2, missing=None, nonzeros=1, max_iter=2).fit(X).transform(bad),
    "non_negative_factorization": lambda X: pw.non_negative_factorization(X, n_components=2, missing=None),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_data_that_cannot_be_used_get_our_own_sentence(door):
    for bad, said in bad_values():
        with pytest.raises(ValueError, match=f"^{said}") as caught:
            door(bad)
        assert len(str(caught.value)) < 250
        assert "HistGradientBoosting" not in str(caught.value)


def test_weights_of_another_model_are_refused():
    model = pw.NMF(3, max_iter=2).fit(X)
    assert model.inverse_transform(X[:, :3]).shape == X.shape
    with pytest.raises(ValueError, match=r"takes weights of shape \(n_samples, 3\).*got shape \(40, 12\)"):
        model.inverse_transform(X)


# -- what is added -------------------------------------------------------------------------------------------


def test_starts_as_objects_tell_the_number_of_parts():
    result = pw.factorize(X, 3, random_state=0)
    assert pw.NMF(init=result, max_iter=5).fit(X).n_components_ == 3
    assert pw.NMF(init=(result.W, result.H), max_iter=5).fit(X).n_components_ == 3
    lists = pw.non_negative_factorization(X, result.W.tolist(), result.H.tolist(), init="custom", max_iter=2)
    assert lists[0].shape == (40, 3)
    assert pw.NMF(3, solver="cd", loss=pw.losses.Frobenius(), max_iter=2).fit(X).n_iter_ == 2


def test_multiplicative_updates_leave_a_tiny_start():
    rng = np.random.RandomState(0)
    W, H = 1e-9 * rng.uniform(size=(40, 3)), 1e-9 * rng.uniform(size=(3, 12))
    options = {"init": "custom", "solver": "mu", "max_iter": 300, "tol": 0}
    theirs = sklearn.decomposition.non_negative_factorization(X, W.copy(), H.copy(), 3, **options)
    ours = pw.non_negative_factorization(X, W, H, 3, **options | {"solver": solvers.MU()})
    assert np.allclose(ours[0] @ ours[1], theirs[0] @ theirs[1], atol=1e-6)


@pytest.mark.parametrize(
    "solver, beta_loss, runs",
    [
        ("cd", "frobenius", "HALS"),
        ("mu", "frobenius", "HALS"),
        ("mu", "kullback-leibler", "Newton"),
        ("mu", 0.5, "Newton("),
    ],
)
def test_scikit_learns_solvers_ask_for_a_loss(solver, beta_loss, runs):
    """Programs written for scikit-learn get the best solver, in the function and in the class, and are told."""
    options = {"beta_loss": beta_loss, "init": "nndsvda", "random_state": 0, "max_iter": 5}
    Y = X + 0.1
    model, best = (pw.NMF(3, solver=name, **options).fit(Y) for name in (solver, "auto"))
    assert np.array_equal(model.components_, best.components_)
    assert model.result_.solver == best.result_.solver
    assert model.result_.solver.startswith(runs)
    assert model.result_.reason == f"solver={solver!r} asks for a loss: {best.result_.reason}"
    _, H, _ = pw.non_negative_factorization(Y, n_components=3, solver=solver, **options)
    assert np.array_equal(H, model.components_)


@pytest.mark.parametrize("beta_loss", [2, 1, 0.5])
def test_mu_ends_where_scikit_learns_does(beta_loss):
    """With its very updates after as many iterations; the best solver for the loss by the same rule, lower down."""
    rng = np.random.RandomState(0)
    Y, W, H = X + 0.1, rng.uniform(size=(40, 3)), rng.uniform(size=(3, 12))
    options = {"n_components": 3, "solver": "mu", "beta_loss": beta_loss, "tol": 1e-3, "max_iter": 1000}
    theirs = sklearn.decomposition.NMF(init="custom", **options)
    theirs.fit_transform(Y, W=W.copy(), H=H.copy())
    ours = pw.NMF(init="custom", **options)
    ours.fit_transform(Y, W=W, H=H)
    assert ours.n_iter_ == theirs.n_iter_ < 1000
    assert ours.result_.status == "ftol"
    best = pw.NMF(init=(W, H), **options | {"tol": 1e-4}).fit(Y)
    assert best.result_.status in ("ftol", "converged")
    assert best.reconstruction_err_ <= theirs.reconstruction_err_
    assert pw.NMF(init=(W, H), **options | {"tol": 1e-4, "solver": "auto"}).fit(Y).result_.status == "converged"


def test_zeros_of_a_custom_start_stay_zeros_with_mu():
    """What users of multiplicative updates know of the parts, they say with zeros."""
    rng = np.random.RandomState(0)
    W, H = rng.uniform(size=(40, 3)), rng.uniform(size=(3, 12))
    H[0, :6] = 0
    options = {"init": "custom", "solver": "mu", "beta_loss": 1, "max_iter": 20, "tol": 0}
    theirs = sklearn.decomposition.non_negative_factorization(X, W.copy(), H.copy(), 3, **options)
    ours = pw.non_negative_factorization(X, W, H, 3, **options)
    assert not ours[1][0, :6].any()
    assert np.allclose(ours[1], theirs[1], rtol=1e-6)


def test_parts_that_are_zero_can_be_held():
    """As a penalty may leave them: then W is 0."""
    W, _, _ = pw.non_negative_factorization(X, H=np.zeros((2, 12)), alpha_W=1.0, update_H=False)
    assert not W.any()


def test_only_literal_updates_warn_of_zeros_in_the_start():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        pw.NMF(3, init="nndsvd", solver="mu", max_iter=5).fit(X)
    with pytest.warns(UserWarning, match="cannot update zeros present in the initialization"):
        pw.NMF(3, init="nndsvd", solver=solvers.MU(), max_iter=5).fit(X)


def test_nonnegativity_is_always_added():
    model = pw.NMF(3, structure_W=s.L1(0.01), structure_H=s.Free(), random_state=0, max_iter=20)
    assert (model.fit_transform(X) >= 0).all()
    assert (model.components_ >= 0).all()


def test_result_holds_the_diagnostics():
    model = pw.NMF(3, random_state=0, n_init=3, init="random").fit(X)
    assert model.result_.n_iter == model.n_iter_
    assert len(model.result_.objectives) == 3
    assert model.result_.certificate.feasible
    assert np.array_equal(model.result_.H, model.components_)


def test_penalties_add_to_structures():
    one = pw.NMF(3, alpha_W=0.01, l1_ratio=1.0, alpha_H=0, structure_W=s.L2(0.1), random_state=0, max_iter=9, tol=0)
    two = pw.NMF(3, structure_W=s.Elastic(0.01 * 12, 0.1), random_state=0, max_iter=9, tol=0)
    assert np.allclose(one.fit_transform(X), two.fit_transform(X))


def test_verbose_prints_a_line_per_iteration(capsys):
    pw.NMF(3, verbose=1, max_iter=4, tol=0).fit(X)
    assert len(capsys.readouterr().out.splitlines()) == 5
    pw.NMF(3, max_iter=4, tol=0).fit(X)
    assert capsys.readouterr().out == ""


def test_shuffle_changes_the_path_and_follows_the_seed():
    runs = [
        pw.NMF(3, solver="cd", shuffle=shuffle, init="nndsvda", random_state=1, max_iter=3, tol=0).fit(X).components_
        for shuffle in (True, True, False)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"loss": "frobenius", "beta_loss": 2}, "say the same thing: give only one"),
        ({"beta_loss": 1, "loss": "kl"}, "say the same thing: give only one"),
        ({"beta_loss": "l1"}, "beta_loss takes what scikit-learn's does.*: use loss='l1'$"),
        ({"beta_loss": "kl"}, "use loss='kl'$"),
        ({"beta_loss": pw.losses.L1(zero_weight=0.5)}, r"use loss=L1\(zero_weight=0.5\)"),
        ({"beta_loss": "kullback"}, "unknown loss 'kullback'.* Did you mean 'kullback-leibler'"),
        ({"beta_loss": 0}, "When beta_loss <= 0 and X contains zeros"),
        (
            {"beta_loss": 1, "solver": "hals"},
            "HALS minimises least squares only.* These can: newton_kl, newton, shared",
        ),
        (
            {"solver": "cd", "beta_loss": 1},
            "Invalid beta_loss parameter: solver 'cd' does not handle beta_loss = 1",
        ),
        ({"solver": "ch"}, "unknown solver 'ch'"),
        ({"init": "nndsv"}, "unknown init 'nndsv'.*Did you mean 'nndsvd'"),
        ({"init": "custom"}, "init='custom' needs both W and H"),
        ({"n_components": 0}, "'n_components' parameter of NMF must be"),
        ({"structure_W": 3}, "'structure_W' parameter of NMF must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        pw.NMF(**{"n_components": 3} | options).fit(X)


def test_convergence_warning_begins_with_scikit_learns_sentence():
    with pytest.warns(ConvergenceWarning, match=r"^Maximum number of iterations 2 reached\. Increase it to improve"):
        pw.NMF(3, max_iter=2).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pw.NMF(3, max_iter=2, tol=0).fit(X)
