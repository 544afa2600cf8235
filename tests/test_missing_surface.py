"""Missing values and weights at the doors: estimators, results, files, pages and the command line."""

import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import io, sparse
from scipy.optimize import nnls
from sklearn import clone
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import partwise as pw
from partwise.cli import deliver, main
from partwise.data.tensor import SparseTensor
from partwise.errors import ArchiveError
from partwise.io import read
from partwise.report.build import build, entries_that_count
from partwise.result import impute

from .covering import EACH

# solvers whose steps do not depend on how many samples there are
PLAIN = {
    "frobenius": pw.solvers.HALS(sweeps=4, extrapolate=False),
    "kullback-leibler": pw.solvers.NewtonKL(extrapolate=False),
    "l1": pw.solvers.WeightedMedian(extrapolate=False),
    1.5: pw.solvers.Newton(extrapolate=False),
}
LOSSES = tuple(PLAIN)
RNG = np.random.default_rng(0)
FULL = pw.datasets.make_parts(30, 20, 3, noise=0.02, random_state=0).X + 0.01
SEEN = RNG.uniform(size=FULL.shape) > 0.3
X = np.where(SEEN, FULL, np.nan)
CUBE = np.einsum("ik,jk,lk->ijl", *(RNG.uniform(size=(dim, 2)) for dim in (10, 8, 6)))
CUBE_SEEN = RNG.uniform(size=CUBE.shape) > 0.3
HOLED_CUBE = np.where(CUBE_SEEN, CUBE, np.nan)
WEIGHTS = RNG.integers(1, 4, 30)


def fitted(loss="frobenius", **options):
    return pw.NMF(3, loss=loss, random_state=0, max_iter=1000, **options)


# -- estimators ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_all_ways_to_say_what_is_observed_are_one(loss):
    plain = fitted(loss).fit(X)
    stored = sparse.csr_array(np.where(SEEN, FULL, 0))
    ways = {
        "frame": fitted(loss).fit(pd.DataFrame(X)),
        "masked": fitted(loss).fit(np.ma.array(FULL, mask=~SEEN)),
        "mask": fitted(loss).fit(FULL, mask=SEEN),
        "sparse mask": fitted(loss).fit(FULL, mask=sparse.csr_array(SEEN)),
        "weights": fitted(loss).fit(FULL, weights=SEEN.astype(float)),
        "zeros": fitted(loss, missing="zeros").fit(stored.toarray()),
    }
    for name, model in ways.items():
        # the columns of a frame are not next to each other, and sums are in another order
        assert np.allclose(model.components_, plain.components_, rtol=1e-6, atol=1e-8), name
        assert model.result_.n_missing == np.count_nonzero(~SEEN), name
    # kernels for entries that are listed add up in another order, and runs end at the tolerance
    listed = fitted(loss, missing="zeros").fit(stored)
    assert listed.reconstruction_err_ == pytest.approx(plain.reconstruction_err_, rel=0.02)


@pytest.mark.parametrize("loss", LOSSES)
def test_transform_of_partly_observed_rows_is_their_own_problem(loss):
    model = fitted(loss).fit(X)
    W = model.transform(X)
    assert np.isfinite(W).all()
    for row in range(4):
        alone = fitted(loss)
        alone.fit(FULL[:, SEEN[row]])
        alone.components_ = np.ascontiguousarray(model.components_[:, SEEN[row]])
        # a complete row of the observed columns is the same problem for other kernels, which end at the tolerance
        assert np.allclose(alone.transform(FULL[row : row + 1, SEEN[row]]), W[row], atol=1e-3 * W.max())
        assert np.allclose(model.transform(X[row : row + 1]), W[row], rtol=1e-9, atol=1e-12)
    assert np.array_equal(model.transform(FULL, mask=SEEN), W)
    assert model.inverse_transform(W).shape == X.shape


def test_transform_is_the_exact_least_squares_of_what_is_observed():
    model = fitted().fit(X)
    expected = [nnls(model.components_[:, seen].T, row[seen])[0] for row, seen in zip(X, SEEN, strict=True)]
    assert np.allclose(model.transform(X), expected, atol=1e-8)
    weights = np.random.default_rng(1).uniform(0.1, 1, X.shape)
    roots = np.sqrt(weights)
    expected = [
        nnls((model.components_ * r)[:, seen].T, (row * r)[seen])[0]
        for row, seen, r in zip(X, SEEN, roots, strict=True)
    ]
    assert np.allclose(model.transform(X, weights=weights), expected, atol=1e-8)


@pytest.mark.parametrize("data", [FULL, X], ids=["complete", "holes"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_sample_of_weight_2_is_that_sample_twice(loss, data):
    rng = np.random.default_rng(1)
    W, H = rng.uniform(0.1, 1, (30, 3)), rng.uniform(0.1, 1, (3, 20))
    model = pw.NMF(3, loss=loss, solver=PLAIN[loss], init="custom", max_iter=15, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 15 iterations are all that is wanted
        once = clone(model).fit(data, W=W, H=H, sample_weight=WEIGHTS)
        repeated = clone(model).fit(np.repeat(data, WEIGHTS, axis=0), W=np.repeat(W, WEIGHTS, axis=0), H=H)
    shapes = [H / H.sum(axis=1, keepdims=True) for H in (once.components_, repeated.components_)]
    assert np.allclose(*shapes, rtol=1e-6, atol=1e-8)  # the scale of a part may be in W
    assert once.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_, rel=1e-6)


def test_weights_of_samples_that_cannot_be():
    for options, message in (
        ({"sample_weight": np.ones(4)}, r"one number for each of the 30 samples, got an array of shape \(4,\)"),
        ({"sample_weight": np.zeros(30)}, "sample_weight is zero for all samples"),
        ({"sample_weight": -np.ones(30)}, "must be >= 0"),
        ({"sample_weight": np.ones(30), "weights": SEEN}, "multiply each row of weights by that of its sample"),
        ({"mask": SEEN[:3]}, r"mask has shape \(3, 20\), and X has shape"),
    ):
        for model in (pw.NMF(3), pw.NTF(3), pw.Dictionary(3)):
            with pytest.raises(ValueError, match=message):
                model.fit(FULL, **options)
    with pytest.raises(ValueError, match="'missing' parameter of NMF must be"):
        pw.NMF(3, missing="zero").fit(X)


def test_rows_without_observations_are_0_and_counted():
    holed = X.copy()
    holed[[3, 7]] = np.nan
    for loss in LOSSES:
        with pytest.warns(UserWarning, match="nothing is observed in 2 rows of X"):
            model = fitted(loss).fit(holed)
        with pytest.warns(UserWarning, match="nothing is observed in 2 rows of X"):
            W = model.transform(holed)
        assert not W[[3, 7]].any()
        assert np.isfinite(model.inverse_transform(W)).all()
    with pytest.warns(UserWarning, match="nothing is observed in 2 rows of X"):
        W = fitted().fit_transform(FULL, sample_weight=~np.isin(np.arange(30), [3, 7]))
    assert not W[[3, 7]].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # parts of columns without observations are held, and known
        model.transform(X[:1])


def test_samples_of_which_nothing_is_observed_at_all():
    for model, data in (
        *((fitted(loss), X) for loss in LOSSES),
        (pw.NTF(2), HOLED_CUBE),
        (pw.Dictionary(3, max_iter=3), FULL),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # three iterations
            model.fit(data)
        kind = "rows" if data.ndim == 2 else "slices along mode 1"
        for options in ({}, {"mask": np.zeros(data[:2].shape, bool)}, {"weights": np.zeros(data[:2].shape)}):
            with pytest.warns(UserWarning, match=f"nothing is observed in 2 {kind} of X"):
                W = model.transform(data[:2] if options else np.full(data[:2].shape, np.nan), **options)
            assert W.shape == (2, model.n_components_) and not W.any()
        with pytest.raises(ValueError, match="no entry of X is observed"):
            model.fit(np.full(data.shape, np.nan))
    shares = pw.NMF(3, structure_W=pw.structures.Simplex(), max_iter=3)
    with pytest.warns(UserWarning, match="Maximum number of iterations"):
        shares.fit(X)
    with pytest.warns(UserWarning, match="nothing is observed in 1 row of X"):
        assert np.allclose(shares.transform(np.full((1, 20), np.nan)), 1 / 3)


class Halved(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / 2


def test_estimators_as_scikit_learn_has_them():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(20)])
    model = fitted().fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert clone(model).get_params()["missing"] == "nan"
    piped = make_pipeline(Halved(), fitted()).fit(frame, nmf__sample_weight=WEIGHTS)
    assert piped.transform(frame).shape == (30, 3)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.transform(X), model.transform(X))
    assert again.result_.n_missing == model.result_.n_missing
    for kind in (pw.NMF, pw.NTF, pw.Dictionary):
        assert get_tags(kind(3)).input_tags.allow_nan
        assert not get_tags(kind(3, missing=None)).input_tags.allow_nan


def test_the_function_takes_them_too():
    W, H, _ = pw.non_negative_factorization(X, n_components=3, random_state=0, max_iter=1000)
    assert np.array_equal(H, fitted().fit(X).components_)
    masked, same, _ = pw.non_negative_factorization(FULL, n_components=3, random_state=0, max_iter=1000, mask=SEEN)
    assert np.array_equal(masked, W) and np.array_equal(same, H)
    held, _, _ = pw.non_negative_factorization(FULL, H=H, update_H=False, weights=SEEN * 2.0)
    assert np.allclose(held, [nnls(H[:, seen].T, row[seen])[0] for row, seen in zip(X, SEEN, strict=True)], atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_tensors_with_holes(loss):
    model = pw.NTF(2, loss=loss, random_state=0).fit(HOLED_CUBE)
    A = model.transform(HOLED_CUBE)
    assert np.allclose(model.inverse_transform(A), CUBE, atol=0.02 * CUBE.max())
    assert np.allclose(model.transform(HOLED_CUBE[2:4]), A[2:4], rtol=1e-6, atol=1e-8)
    assert np.array_equal(model.transform(CUBE, mask=CUBE_SEEN), A)
    masked = pw.NTF(2, loss=loss, random_state=0).fit(CUBE, mask=CUBE_SEEN, sample_weight=np.arange(1, 11))
    assert masked.result_.n_missing == np.count_nonzero(~CUBE_SEEN) and masked.result_.weighted


def test_dictionaries_of_holed_samples():
    planted = pw.datasets.make_sparse_codes(200, 12, 15, nonzeros=2, random_state=0)
    model = pw.Dictionary(15, nonzeros=2, random_state=0, init=(planted.W, planted.H), max_iter=50).fit(planted.X)
    seen = np.random.default_rng(1).uniform(size=planted.X.shape) > 0.1
    codes = model.transform(np.where(seen, planted.X, np.nan))
    assert (codes != 0).sum(axis=1).max() == 2
    found = model.inverse_transform(codes)
    assert np.median(np.abs(found - planted.X)[~seen]) < 1e-3 * np.abs(planted.X).max()
    holed = pw.Dictionary(15, nonzeros=2, random_state=0, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three iterations
        assert np.isfinite(holed.fit(planted.X, mask=seen).components_).all()


# -- results -------------------------------------------------------------------------------------------


def test_impute_fills_in_what_is_missing_and_nothing_else():
    result = pw.factorize(X, 3, random_state=0)
    model = result.reconstruct()
    expected = np.where(SEEN, FULL, model)
    stored = sparse.csr_array(np.where(SEEN, FULL, 0))
    for filled in (
        result.impute(X),
        result.impute(FULL, mask=SEEN),
        result.impute(FULL, mask=sparse.csr_array(SEEN)),
        result.impute(np.ma.array(FULL, mask=~SEEN)),
        result.impute(stored, missing="zeros"),
        result.impute(stored.toarray(), missing="zeros"),
        result.impute(stored, mask=SEEN),
        result.impute(X.tolist()),
    ):
        assert type(filled) is np.ndarray and filled.dtype == np.float64
        assert np.array_equal(filled[SEEN], FULL[SEEN])
        assert np.allclose(filled, expected, rtol=1e-13)
    assert np.isnan(X).any()  # it is not written to
    for kind in (np.float16, np.float32, np.longdouble):
        filled = result.impute(X.astype(kind))
        assert filled.dtype == kind
        assert np.array_equal(filled[SEEN], X.astype(kind)[SEEN])
    counts = np.arange(600).reshape(30, 20)
    assert np.array_equal(result.impute(counts, mask=SEEN)[SEEN], counts[SEEN])
    with pytest.warns(UserWarning, match="nothing was filled in"):
        assert np.array_equal(result.impute(counts), counts)


def test_impute_keeps_frames():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(20)], index=[f"s{i}" for i in range(30)])
    frame["f3"] = np.arange(30)
    result = pw.factorize(frame, 3, random_state=0)
    filled = result.impute(frame)
    assert isinstance(filled, pd.DataFrame) and not filled.isna().any(axis=None)
    assert filled["f3"].dtype == frame["f3"].dtype
    pd.testing.assert_frame_equal(filled.where(frame.notna()), frame)


def test_impute_fills_in_whole_numbers_of_pandas():
    frame = pd.DataFrame(X.round(1) * 10)
    frame[0] = np.arange(30.0)
    counts, mixed = frame.astype("Int64"), frame.astype({3: "Int8"})
    result = pw.factorize(frame, 3, random_state=0)
    for given in (counts, mixed):
        filled = result.impute(given)
        assert np.allclose(filled.astype(float), result.impute(frame))
        assert list(filled.dtypes[1:]) == ["Float64" if kind.kind == "i" else kind for kind in given.dtypes[1:]]
    assert result.impute(counts).dtypes[0] == "Int64"
    whole = pd.DataFrame(np.arange(600).reshape(30, 20))
    assert np.allclose(result.impute(whole, mask=SEEN), np.where(SEEN, whole, result.reconstruct()))


def test_impute_knows_weights():
    weights = SEEN * np.arange(1, 21)
    result = pw.factorize(FULL, 3, weights=weights, random_state=0)
    expected = np.where(SEEN, FULL, result.reconstruct())
    assert np.allclose(result.impute(FULL, weights=weights), expected)
    assert np.allclose(result.impute(FULL, weights=sparse.csr_array(weights)), expected)
    rows = np.arange(30) % 3
    filled = result.impute(FULL, weights=(rows, None))
    assert np.allclose(filled, np.where(rows[:, None] > 0, FULL, result.reconstruct()))
    with pytest.warns(UserWarning, match=r"nothing was filled in: .* Say here what was said there: missing='zeros'"):
        assert np.array_equal(result.impute(sparse.csr_array(FULL)), FULL)


def test_impute_tensors():
    result = pw.factorize(HOLED_CUBE, 2, random_state=0)
    filled = result.impute(HOLED_CUBE)
    assert np.array_equal(filled[CUBE_SEEN], CUBE[CUBE_SEEN])
    assert np.allclose(filled, CUBE, atol=1e-2 * CUBE.max())
    listed = SparseTensor(np.argwhere(CUBE_SEEN), CUBE[CUBE_SEEN], CUBE.shape)
    assert np.array_equal(result.impute(listed, missing="zeros"), filled)


def test_impute_says_what_it_cannot_do(monkeypatch):
    result = pw.factorize(X, 3, random_state=0)
    with pytest.raises(
        ValueError, match=r"X has shape \(5, 20\), but .* of shape \(30, 20\); for other samples use tran"
    ):
        result.impute(X[:5])
    with pytest.raises(ValueError, match="missing must be 'nan', 'zeros' or None, got 'zero'"):
        result.impute(X, missing="zero")
    with pytest.raises(ValueError, match=r"X contains .* NaN entries"):
        result.impute(X, missing=None)
    monkeypatch.setattr(impute, "MOST_ENTRIES", 100)
    with pytest.raises(ValueError, match="has 600 entries, more than are made into an array here: compute those that"):
        result.impute(sparse.csr_array(FULL), missing="zeros")


OBSERVED = {
    "complete": ({}, 600, False, ""),
    "holes": ({"mask": SEEN}, SEEN.sum(), False, f"{100 * SEEN.mean():.3g}% observed"),
    "equal weights": ({"weights": np.full(X.shape, 3.0)}, 600, False, ""),
    "row weights": ({"weights": (WEIGHTS, None)}, 600, True, "weighted"),
    "weights": ({"weights": SEEN * FULL}, SEEN.sum(), True, f"{100 * SEEN.mean():.3g}% observed, weighted"),
    "columns of weight 0": ({"weights": (None, np.arange(20) > 1)}, 540, False, "90% observed"),
    "both": (
        {"mask": SEEN, "weights": (None, np.arange(20) > 1)},
        SEEN[:, 2:].sum(),
        False,
        f"{100 * SEEN[:, 2:].sum() / 600:.3g}% observed",
    ),
}


@EACH
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", OBSERVED)
@pytest.mark.filterwarnings("ignore:nothing is observed in 2 columns", "ignore:Maximum")
def test_results_remember_how_entries_counted(name, store, tmp_path):
    counts, n_observed, weighted, told = OBSERVED[name]
    result = pw.factorize(store(FULL), 3, random_state=0, max_iter=5, **counts)
    for found in (result, pw.load(result.save(tmp_path / "r.partwise"))):
        assert (found.n_observed, found.n_missing, found.weighted) == (n_observed, 600 - n_observed, weighted)
        assert found.observed == told
        assert told in repr(found)
    if told:
        with pytest.raises(ValueError, match="no bound where entries of X are missing, or count by weights"):
            result.certify(FULL)
    else:
        assert result.certify(FULL).bound > 0


def test_what_needs_all_entries_says_so():
    with pytest.raises(ValueError, match=r"NaN entries: finite numbers are needed here. Fill them in, or drop"):
        pw.factorize(FULL, 3).certify(X)
    with pytest.raises(ValueError, match=r"T contains .* NaN entries: finite numbers are needed here"):
        pw.metrics.core_consistency(HOLED_CUBE, pw.factorize(CUBE, 2).factors)


def test_old_files_and_numbers_that_cannot_be(tmp_path):
    result = pw.factorize(X, 3, random_state=0)
    assert pw.load(Path(__file__).parent / "files" / "l1-1.partwise").n_missing == 0
    for count in (-1, 600):
        object.__setattr__(result, "n_missing", count)
        with pytest.raises(ArchiveError, match="entries missing"):
            result.save(tmp_path / "r.partwise")


COUNTS = {
    "nan": (X, {}, {"mask": np.roll(SEEN, 1)}),
    "zeros": (sparse.csr_array(np.where(SEEN, FULL, 0)), {"missing": "zeros"}, {}),
    "mask": (FULL, {"mask": SEEN}, {}),
    "weights": (FULL, {"weights": FULL}, {"weights": FULL + SEEN}),
    "twice the weights": (FULL, {"weights": FULL}, {"weights": 2 * FULL}),
    "vectors": (FULL, {"weights": (WEIGHTS, None)}, {"weights": (WEIGHTS[::-1], None)}),
    "twice the vectors": (X, {"weights": (WEIGHTS, None)}, {"weights": (2 * WEIGHTS, None)}),
    "one of two vectors": (X, {"weights": (WEIGHTS, np.arange(20))}, {"weights": (WEIGHTS, None)}),
}


@EACH
@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("loss", ["frobenius", "kl"])
@pytest.mark.filterwarnings("ignore:Maximum", "ignore:nothing is observed")
def test_checkpoints_of_other_weights_are_refused(name, loss, tmp_path):
    data, counts, other = COUNTS[name]
    kept, settings = tmp_path / "c.partwise", {"loss": loss, "random_state": 0, "tol": 0}
    whole = pw.factorize(data, 3, max_iter=8, **settings, **counts)
    pw.factorize(data, 3, max_iter=4, checkpoint=(kept, 0), **settings, **counts)
    again = pw.factorize(data, 3, max_iter=8, resume=kept, **settings, **counts)
    assert all(map(np.array_equal, again.factors, whole.factors))
    assert [record.objective for record in again.history] == [record.objective for record in whole.history]
    with pytest.raises(
        ArchiveError, match="a checkpoint of something else: which entries of X count, and how much, is"
    ):
        pw.factorize(data, 3, max_iter=8, resume=kept, **settings, **other)


# -- files, pages and the command line -----------------------------------------------------------------


def test_one_part_is_not_parts():
    assert "in 1 part, relative" in repr(pw.factorize(X, 1, random_state=0))


def test_pages_say_how_many_entries_are_missing(plain_pictures):
    page = build(pw.factorize(X, 3, random_state=0), "Holes")
    facts = dict(page["asked"])
    assert facts["entries"].startswith(f"{SEEN.sum()} of 600 observed; the others are missing, and count neither")
    assert page["headline"].startswith(f"30 × 20 data, {100 * SEEN.mean():.3g}% observed, in 3 parts")
    assert ": nan" not in str(page).lower()
    weighted = pw.factorize(FULL, 3, weights=(WEIGHTS, None), random_state=0)
    assert entries_that_count(weighted) == "the loss of each is multiplied by its weight"


def fit(folder, arguments, capsys):
    """Status, standard error and what result.json says."""
    status = main(["fit", *arguments, "--rank", "3", "--out", str(folder / "out"), "--quiet"])
    told = folder / "out" / "result.json"
    return status, capsys.readouterr().err, json.loads(told.read_text()) if status == 0 else None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(deliver, "REPORT_NEEDS", ["no such library"])  # pages take longer than all else here
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "full.npy", FULL)
    np.save(tmp_path / "seen.npy", SEEN)
    np.save(tmp_path / "part.npy", SEEN[:3])
    np.save(tmp_path / "row.npy", WEIGHTS)
    io.mmwrite(tmp_path / "stored.mtx", sparse.coo_array(np.where(SEEN, FULL, 0)))
    io.mmwrite(tmp_path / "pattern.mtx", sparse.coo_array(SEEN.astype(int)))
    sparse.save_npz(tmp_path / "weights.npz", sparse.csr_array(SEEN * 2.0))
    pd.DataFrame(X).to_csv(tmp_path / "x.csv")
    pd.DataFrame(X).to_csv(tmp_path / "x.tsv", sep="\t", na_rep="NA")
    places = "".join(f"{i + 1} {j + 1} {X[i, j]!r}\n" for i, j in np.ndindex(*X.shape))
    (tmp_path / "x.tns").write_text(re.sub(r"np.float64\((.*)\)", r"\1", places))
    return tmp_path


FILES = ["x.npy", "x.csv", "x.tsv", "x.tns", "stored.mtx --missing zeros", "full.npy --mask seen.npy"]
FILES += ["full.npy --mask pattern.mtx", "full.npy --weights weights.npz", "full.npy --transpose --mask seen.npy"]


@pytest.mark.parametrize("line", FILES)
def test_files_with_missing_values(line, folder, capsys):
    arguments = [str(folder / word) if "." in word else word for word in line.split()]
    status, err, told = fit(folder, arguments, capsys)
    assert (status, err) == (0, "")
    assert told["n_missing"] == np.count_nonzero(~SEEN)
    assert told["relative_error"] < 0.1
    assert "optimality" not in told


@pytest.mark.parametrize("options", ["", "--transpose", "--out-of-core"])
def test_one_column_of_weights_is_of_samples_and_one_row_of_features(options, folder, capsys):
    vectors = np.arange(1.0, 31), np.arange(1.0, 21)
    for mode, vector in enumerate(vectors):
        np.save(folder / "vector.npy", vector[:, None] if mode == 0 else vector[None])
        arguments = [str(folder / "full.npy"), "--weights", str(folder / "vector.npy"), "--force", *options.split()]
        status, err, told = fit(folder, arguments, capsys)
        assert (status, err) == (0, "")
        A = FULL.T if options == "--transpose" else FULL
        weights = (vector, None) if (mode == 0) != (options == "--transpose") else (None, vector)
        alike = pw.factorize(A, 3, weights=weights, random_state=0)
        assert told["relative_error"] == pytest.approx(alike.relative_error, rel=1e-3)


def test_weights_of_one_entry_and_of_tensors_are_as_large_as_the_data(folder, capsys):
    np.save(folder / "one.npy", np.ones((1, 1)))
    status, err, _ = fit(folder, [str(folder / "full.npy"), "--weights", str(folder / "one.npy")], capsys)
    assert status == 2 and "weights has shape (1, 1)" in err
    np.save(folder / "thin.npy", FULL[:6, None, :5])
    np.save(folder / "counts.npy", np.ones((6, 1, 5)))
    status, err, _ = fit(folder, [str(folder / "thin.npy"), "--weights", str(folder / "counts.npy")], capsys)
    assert (status, err) == (0, "")


@pytest.mark.parametrize("turned", [[], ["--transpose"]], ids=["", "transposed"])
def test_tables_are_filled_in(turned, folder, capsys):
    frame = pd.DataFrame(X, columns=[f"f, {j}" for j in range(20)])
    frame.to_csv(folder / "named.csv", index=False)
    status, err, _ = fit(folder, [str(folder / "named.csv"), "--impute", str(folder / "filled.csv"), *turned], capsys)
    assert (status, err) == (0, "")
    W, H = (np.load(folder / "out" / f"{name}.npy") for name in "WH")
    filled = pd.read_csv(folder / "filled.csv", float_precision="round_trip")
    assert list(filled.columns) == list(frame.columns)
    assert np.array_equal(filled.to_numpy()[SEEN], X[SEEN])
    assert np.allclose(filled.to_numpy()[~SEEN], ((W @ H).T if turned else W @ H)[~SEEN])


LINES = {
    "x.npy --missing none": "X contains .* NaN entries: finite numbers are needed here.* missing=None was passed",
    "x.npy --missing all": "argument --missing: invalid choice: 'all'",
    "full.npy --mask part.npy": r"mask has shape \(3, 20\), and X has shape \(30, 20\)",
    "full.npy --weights row.npy": r"row.npy: it holds an array of shape \(30,\) and type .*, where a matrix",
    "x.npy --impute filled.txt": "filled.txt: tables are written to .csv, .tsv, .parquet, .npy",
    "full.npy --mask nowhere.npy": "nowhere.npy: no such file",
    "full.npy --mask full.npy": "mask says which entries of X are observed, by True and False, or 1 and 0",
    "full.npy --weights x.npy": "weights must be finite numbers >= 0, and .* are NaN or infinite",
}


@pytest.mark.parametrize("line", LINES)
def test_what_the_command_line_refuses(line, folder, capsys):
    arguments = [str(folder / word) if "." in word else word for word in line.split()]
    status, err, _ = fit(folder, arguments, capsys)
    assert status == 2
    assert re.match(f"partwise: .*{LINES[line]}", err)
    assert err.count("\n") == 1


def test_cells_without_numbers_are_missing(folder):
    for name in ("x.csv", "x.tsv"):
        assert np.array_equal(read(folder / name).X, X, equal_nan=True)
