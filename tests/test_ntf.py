"""Nonnegative tensor factorization in scikit-learn's manner."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_cp

from .covering import PAIRS

PLANTED = make_cp((12, 10, 8), 3, random_state=0)
LISTED = pw.SparseTensor(np.argwhere(PLANTED.X), PLANTED.X[np.nonzero(PLANTED.X)], PLANTED.X.shape)
MODEL = pw.NTF(3, tol=1e-8, random_state=0).fit(PLANTED.X)


def test_the_model_is_weights_and_unit_factors():
    A, B, C = MODEL.factors_
    assert np.allclose(np.einsum("z,iz,jz,kz->ijk", MODEL.weights_, A, B, C), PLANTED.X, atol=1e-4)
    assert all(np.allclose(np.linalg.norm(A, axis=0), 1) for A in MODEL.factors_)
    assert (np.diff(MODEL.weights_) <= 0).all()
    assert MODEL.reconstruction_err_ < 1e-4
    assert MODEL.n_components_ == 3 and MODEL.n_iter_ == MODEL.result_.n_iter
    assert pw.metrics.factor_match(PLANTED, MODEL.result_) > 0.999


@PAIRS
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("loss", ["frobenius", "kl", 1.5, "l1"])
@pytest.mark.parametrize("X", [PLANTED.X, LISTED], ids=["dense", "sparse"])
def test_the_same_slices_get_the_same_weights(X, loss, normalize):
    model = pw.NTF(3, loss=loss, normalize=normalize, tol=1e-6, random_state=0)
    weights = model.fit_transform(X)
    assert np.allclose(weights, model.factors_[0] * model.weights_)
    assert np.allclose(model.transform(X), weights, atol=1e-2 * weights.max())
    assert np.allclose(model.transform(PLANTED.X[3:5]), weights[3:5], atol=1e-2 * weights.max())
    assert np.allclose(model.inverse_transform(weights), model.result_.reconstruct())
    assert all(map(np.array_equal, model.factors_, model.result_.factors)) == (not normalize)


def test_every_storage():
    weights = MODEL.transform(PLANTED.X)
    assert np.allclose(MODEL.transform(LISTED), weights, atol=1e-6)
    again = pw.NTF(3, tol=1e-8, random_state=0).fit(LISTED)
    assert np.allclose(again.weights_, MODEL.weights_, rtol=1e-4)
    counts = pw.NTF(3, loss="kl", random_state=0).fit(LISTED)
    assert np.allclose(counts.transform(LISTED), counts.transform(PLANTED.X), atol=1e-4)
    single = pw.NTF(3, random_state=0).fit(PLANTED.X.astype(np.float32))
    assert single.transform(PLANTED.X[:2].astype(np.float32)).dtype == single.factors_[0].dtype == np.float32


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_a_matrix_is_the_tensor_of_order_two(store):
    X = store(pw.datasets.make_parts(20, 15, 3, random_state=0).X)
    model = pw.NTF(3, random_state=0)
    weights = model.fit_transform(X)
    assert model.result_.W.shape == (20, 3)
    assert np.allclose(model.transform(X), weights, atol=1e-2 * weights.max())
    assert model.inverse_transform(weights).shape == (20, 15)
    assert np.allclose(model.inverse_transform(sparse.csr_array(weights)), model.inverse_transform(weights))
    assert np.allclose(model.inverse_transform(weights.tolist()), model.inverse_transform(weights))


@pytest.mark.slow
def test_structures_hold_in_the_factors_shown():
    """Columns that may have any scale have norm 1, the others are those of the structure."""
    known = PLANTED.factors[1]
    model = pw.NTF(3, structures=["simplex", s.Fixed(known), "sparse(4, 'component')"], random_state=0, tol=1e-3)
    weights = model.fit_transform(PLANTED.X)
    assert np.allclose(model.factors_[0].sum(axis=1), 1)
    assert np.array_equal(model.factors_[1], known)
    assert np.allclose(np.linalg.norm(model.factors_[2], axis=0), 1)
    assert np.allclose(model.weights_, np.linalg.norm(model.result_.factors[2], axis=0))
    assert np.allclose(weights, model.factors_[0] * model.weights_)
    assert np.allclose(model.inverse_transform(weights), model.result_.reconstruct())
    assert np.allclose(model.transform(PLANTED.X), weights, atol=1e-2 * weights.max())


def test_of_a_held_part_alone_the_scale_stays():
    held = np.where(np.arange(3) == 1, PLANTED.factors[1], np.inf)
    box = s.Box(np.where(np.isinf(held), 0, held), held)
    model = pw.NTF(3, structures=[None, box, None], random_state=0, tol=1e-3).fit(PLANTED.X)
    assert np.array_equal(model.factors_[1][:, 1], held[:, 1])
    assert np.allclose(np.linalg.norm(model.factors_[1][:, [0, 2]], axis=0), 1)


def test_weights_in_extreme_units():
    held = {"structures": [None, *map(s.Fixed, PLANTED.factors[1:])]}
    plain = pw.NTF(3, **held, random_state=0).fit(PLANTED.X)
    for unit in (2.0**900, 2.0**-900):
        model = pw.NTF(3, **held, random_state=0)
        weights = model.fit_transform(unit * PLANTED.X)
        assert np.allclose(model.weights_ / unit, plain.weights_, rtol=1e-6)
        assert np.allclose(model.inverse_transform(weights / unit), plain.result_.reconstruct())


def test_structures_hold_for_other_slices_too():
    model = pw.NTF(3, structures=["box(0, 0.3)", None, "simplex"], normalize=False, random_state=0, tol=0.01)
    model.fit(PLANTED.X)
    assert np.allclose(model.factors_[2].sum(axis=1), 1)
    assert model.transform(2 * PLANTED.X).max() <= 0.3 * (1 + 1e-9)
    model.set_params(structures=[s.Smooth(0.01), None, None], tol=0.1).fit(PLANTED.X)
    with pytest.warns(UserWarning, match=r"structures\[0\]=.*Smooth.* has no meaning for new ones"):
        assert model.transform(PLANTED.X[:4]).shape == (4, 3)


def test_scikit_learn_handles_it():
    model = pw.NTF(2, loss="kl", structures=["l1(0.1)", None, None], modes=["a", "b", "c"], random_state=0, tol=0.05)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(n_components=3).n_components == 3
    assert "NTF(" in repr(model)
    model.fit(PLANTED.X)
    assert [mode.name for mode in model.result_.modes] == ["a", "b", "c"]
    restored = pickle.loads(pickle.dumps(model))
    assert np.array_equal(restored.transform(PLANTED.X), model.transform(PLANTED.X))
    assert list(model.get_feature_names_out()) == ["ntf0", "ntf1"]
    assert list(model.set_output(transform="pandas").transform(PLANTED.X).columns) == ["ntf0", "ntf1"]
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), pw.NTF(2, random_state=0))
    assert pipeline.fit_transform(PLANTED.X).shape == (12, 2)


def test_a_start_and_a_callback():
    seen = []
    model = pw.NTF(
        3, init=MODEL.result_, callbacks=[lambda record, factors: seen.append(record.n_iter)], random_state=0
    )
    assert model.fit(PLANTED.X).n_iter_ <= 5
    assert len(seen) >= model.n_iter_
    model = pw.NTF(3, init=list(PLANTED.factors), random_state=0).fit(PLANTED.X)
    assert model.reconstruction_err_ < 1e-6


def test_verbose_prints_lines(capsys):
    pw.NTF(2, verbose=1, max_iter=5, tol=0.1, random_state=0).fit(PLANTED.X)
    assert len(capsys.readouterr().out.splitlines()) >= 2


WRONG = {
    "n_components": ({"n_components": 0}, "n_components"),
    "structures": ({"structures": ["l1(1)"]}, "one structure for each of the 3 modes of X"),
    "structure": ({"structures": [None, "simple", None]}, "^for A2: unknown structure 'simple'"),
    "modes": ({"modes": ["a", "b"]}, "modes must name every mode of X once"),
    "solver": ({"solver": "hal"}, "Did you mean 'hals'"),
    "normalize": ({"normalize": "H"}, "normalize"),
}


@pytest.mark.parametrize("options, message", WRONG.values(), ids=WRONG)
def test_wrong_parameters_get_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        pw.NTF(**({"n_components": 2} | options)).fit(PLANTED.X)


def test_wrong_data_get_a_sentence():
    with pytest.raises(ValueError, match=r"slices of shape \(10, 8\).*an array of order 3; got .* \(12, 10, 7\)"):
        MODEL.transform(PLANTED.X[:, :, :7])
    with pytest.raises(ValueError, match="slices of shape"):
        MODEL.transform(PLANTED.X[0])
    with pytest.raises(ValueError, match=r"weights of shape \(n_samples, 3\)"):
        MODEL.inverse_transform(np.ones((4, 2)))
    for given, message in ((np.ones(3), "Reshape"), ([1.0, 2.0, 3.0], "Reshape"), (np.full((4, 3), np.nan), "12 NaN")):
        with pytest.raises(ValueError, match=f"weights .*{message}"):
            MODEL.inverse_transform(given)
    with pytest.raises(ValueError, match="Negative values in data"):
        pw.NTF(2).fit(-PLANTED.X)
    with pytest.raises(NotFittedError):
        pw.NTF(2).transform(PLANTED.X)
