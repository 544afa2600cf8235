"""What a result says of its fit: errors and shares that mean something for every loss."""

import json
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition._nmf import _beta_divergence
from sklearn.metrics import d2_tweedie_score

import partwise as pw
from partwise import structures as s
from partwise.cli import main
from partwise.data import as_data
from partwise.data.names import Mode
from partwise.errors import ArchiveError
from partwise.io import load
from partwise.io.write import summary, write_result
from partwise.problem import pose
from partwise.registry import resolve
from partwise.report import build
from partwise.result.result import unit_factors

from .covering import EACH

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(3 * RNG.gamma(0.5, size=(20, 3)) @ RNG.gamma(0.5, size=(3, 12))).astype(float)
LOSSES = ["frobenius", "kl", "itakura-saito", "beta(0.5)", "beta(1.5)", "beta(3)", "beta(-1)", "l1", "huber"]


def fit(X, loss, **options):
    return pw.factorize(X, 2, **{"loss": loss, "random_state": 0, "max_iter": 30, "tol": 0} | options)


def takes_zeros(loss):
    beta = getattr(resolve("loss", loss), "beta", None)
    return beta is None or beta > 0


def positive(loss):
    """Data without zeros where the loss takes none."""
    return COUNTS if takes_zeros(loss) else COUNTS + 1


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["kl", "itakura-saito", "beta(0.5)", "beta(-1)"])
def test_explained_is_the_share_of_the_deviance(loss, store):
    """D^2 as scikit-learn has it; a model of 0 under a count of 0 costs nothing."""
    X = positive(loss)
    result = fit(store(X), loss)
    model = np.maximum(result.W @ result.H, 1e-200)
    expected = d2_tweedie_score(X.ravel(), model.ravel(), power=2 - result.loss.beta)
    assert 0.5 < result.explained < 1
    assert result.explained == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", ["beta(1.5)", "beta(3)"])
def test_explained_of_other_divergences_is_against_the_mean_too(loss):
    result = fit(COUNTS, loss)
    null = result.loss.value(COUNTS, np.full_like(COUNTS, COUNTS.mean()))
    assert result.explained == pytest.approx(1 - result.fit / null, rel=1e-9)


def test_explained_of_norms_is_against_zero():
    least_squares, absolute = fit(COUNTS, "frobenius"), fit(COUNTS, "l1")
    rest, left = COUNTS - least_squares.W @ least_squares.H, COUNTS - absolute.W @ absolute.H
    assert least_squares.explained == pytest.approx(1 - np.square(rest).sum() / np.square(COUNTS).sum())
    assert least_squares.relative_error == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(COUNTS))
    assert absolute.explained == pytest.approx(1 - np.abs(left).sum() / COUNTS.sum())
    assert absolute.relative_error == pytest.approx(np.abs(left).sum() / COUNTS.sum())


@pytest.mark.parametrize("loss", LOSSES)
def test_errors_are_shares_and_reconstruction_errors_are_scikit_learns(loss):
    result = fit(positive(loss), loss)
    assert 0 < result.relative_error < 1
    assert result.explained == pytest.approx(1 - result.relative_error ** (1 / result.loss.error_power))
    if loss not in ("l1", "huber"):
        model = pw.NMF(2, loss=loss, random_state=0, max_iter=30, tol=0)
        W = model.fit_transform(positive(loss))
        beta = result.loss.beta
        error = _beta_divergence(positive(loss), W, model.components_, beta, square_root=True)
        assert model.reconstruction_err_ == pytest.approx(error, rel=1e-5)


@EACH
@pytest.mark.parametrize("unit", [2.0**-300, 1e-100, 1e100])
@pytest.mark.parametrize("loss", ["kl", "itakura-saito", "beta(-1)", "beta(1.5)"])
def test_units_do_not_matter(loss, unit):
    plain, scaled = (fit(u * positive(loss), loss) for u in (1.0, unit))
    assert scaled.explained == pytest.approx(plain.explained, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_says_the_same(loss):
    X = positive(loss)
    single, double = (fit(X.astype(kind), loss) for kind in (np.float32, np.float64))
    assert single.explained == pytest.approx(double.explained, rel=1e-3)


DEGENERATE = {
    "constant": np.full((5, 4), 7.0),
    "constant but for rounding": np.full((5, 4), 7.0) * (1 + 1e-9 * RNG.uniform(size=(5, 4))),
    "one entry": np.array([[3.0]]),
    "all zero": np.zeros((5, 4)),
}


@EACH
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "name, loss", [(n, f) for n in DEGENERATE for f in LOSSES if n != "all zero" or takes_zeros(f)]
)
def test_where_there_is_nothing_to_explain(name, loss, store):
    """The null model has no error, and a fit is compared with the size of X."""
    X = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = pw.factorize(store(X), 1, loss=loss, random_state=0, tol=0, max_iter=200)
    assert result.explained == pytest.approx(1, abs=1e-6)
    assert 0 <= result.relative_error < 1e-3
    bad = pw.factorize(
        store(X), 1, loss=loss, structure_H=s.Fixed(np.full((1, X.shape[1]), 2.0)), structure_W="box(9, 9)"
    )
    assert bad.explained < 0.8


@pytest.mark.slow
def test_worse_than_the_mean_is_below_zero():
    held = s.Fixed(np.eye(2, 12) + 1e-3)
    assert fit(COUNTS, "kl", structure_H=held).explained < 0


def test_nothing_of_the_size_of_a_dense_x_is_made():
    """A dense X would take a terabyte."""
    X = sparse.coo_array(([1.0, 2.0, 5.0], ([0, 300_000, 499_999], [7, 250_000, 0])), shape=(500_000, 300_000)).tocsr()
    size = 1.5e11
    mean = 8 / size
    problem = pose(as_data(X), resolve("loss", "kl"), (s.NonNegative(), s.NonNegative()), 1)
    deviance = sum(x * np.log(x / mean) for x in (1, 2, 5))
    assert problem.null_error == pytest.approx(np.sqrt(2 * deviance))
    problem = pose(as_data(X), resolve("loss", 1.5), (s.NonNegative(), s.NonNegative()), 1)
    deviance = (sum(x**1.5 for x in (1, 2, 5)) - size * mean**1.5) / 0.75
    assert problem.null_error == pytest.approx(np.sqrt(2 * deviance))


@pytest.mark.usefixtures("plain_pictures")
def test_the_share_is_told_everywhere(tmp_path, capsys, plain_pictures):
    result = fit(COUNTS, "kl")
    share = f"{result.explained:.1%} of the deviance explained"
    assert share in repr(result)
    assert summary(result)["explained"] == result.explained
    page = build(result, "Title")
    assert share in page["headline"]
    assert page["quality"]["statements"][0]["text"] == f"The model explains {result.explained:.1%} of the deviance."
    squares = build(fit(COUNTS, "frobenius"), "Title")["quality"]["statements"][0]["text"]
    assert "% of the sum of squares; its relative error is 0." in squares
    assert load(result.save(tmp_path / "result.partwise")).explained == result.explained
    np.save(tmp_path / "x.npy", COUNTS)
    assert main(["fit", str(tmp_path / "x.npy"), "--rank", "2", "--loss", "kl", "--out", str(tmp_path / "out")]) == 0
    assert "of the deviance explained" in capsys.readouterr().out
    assert 0.5 < json.loads((tmp_path / "out" / "result.json").read_text())["explained"] < 1


def three_factors(**changes):
    """A result of three modes, by hand."""
    flat = fit(COUNTS, "frobenius")
    factors = (*flat.factors, np.ones((5, 2)))
    certificate = replace(flat.certificate, violations=(0.0, 0.0, 0.0))
    about = {"factors": factors, "structures": (s.NonNegative(),) * 3, "certificate": certificate}
    return replace(flat, **(about | changes))


def test_a_result_of_three_factors(tmp_path):
    result = three_factors()
    again = load(result.save(tmp_path / "r.partwise"))
    assert all(map(np.array_equal, again.factors, result.factors))
    assert repr(result).startswith("<partwise result: 20 x 12 x 5 in 2 parts")
    assert list(result.named) == ["A1", "A2", "A3"]
    assert list(summary(result)["structures"]) == ["A1", "A2", "A3"]
    assert [path.name for path in write_result(result, tmp_path)] == [
        "A1.npy",
        "A2.npy",
        "A3.npy",
        "result.json",
        "model.partwise",
    ]
    assert [np.load(tmp_path / f"{name}.npy").shape for name in result.named] == [(20, 2), (12, 2), (5, 2)]
    with pytest.raises(AttributeError, match=r"is for matrices, and X has 3 modes: see result\.named"):
        result.W  # noqa: B018
    with pytest.raises(ValueError, match=r"X has shape \(20, 12\), but this result is of one of shape \(20, 12, 5\)"):
        result.certify(COUNTS)


def test_weights_and_the_model():
    result = three_factors()
    A, B, C = result.factors
    assert np.allclose(result.reconstruct(), np.einsum("iz,jz,kz->ijk", A, B, C))
    assert result.weights == pytest.approx(
        [np.linalg.norm(np.multiply.outer(np.outer(A[:, k], B[:, k]), C[:, k])) for k in (0, 1)]
    )
    sums = np.array([(A[:, k].sum() * B[:, k].sum() * C[:, k].sum()) for k in (0, 1)])
    assert result.shares == pytest.approx(sums / sums.sum())
    flat = fit(COUNTS, "frobenius")
    assert np.array_equal(flat.reconstruct(), flat.W @ flat.H)
    large = replace(result, factors=(np.ones((2000, 2)),) * 3)
    with pytest.raises(ValueError, match=r"the model has 8e\+09 entries.* from result\.factors"):
        large.reconstruct()


EXTREME = {
    1e300: (1.0, 1e300, 1.0),
    1e-300: (1e-300, 1.0, 1.0),
    1e200: (1e200, 1e200, 1e-200),
    1e-200: (1e-200, 1e-200, 1e200),
}


@pytest.mark.parametrize("product, units", EXTREME.items())
def test_weights_in_extreme_units(product, units):
    plain = three_factors()
    extreme = replace(plain, factors=tuple(unit * A for unit, A in zip(units, plain.factors, strict=True)))
    assert np.allclose(extreme.weights / product, plain.weights)
    assert all(map(np.allclose, unit_factors(extreme.factors), unit_factors(plain.factors)))


MODES = (Mode("person", tuple(f"p{i}" for i in range(20))), Mode("nm", tuple(np.linspace(250, 300, 12))), Mode("day"))


def test_modes_are_carried_along(tmp_path):
    result = three_factors(modes=MODES)
    assert load(result.save(tmp_path / "r.partwise")).modes == MODES
    write_result(result, tmp_path)
    about = json.loads((tmp_path / "result.json").read_text())
    assert about["modes"][0] == {"name": "person", "labels": list(MODES[0].labels)}
    assert about["modes"][1]["labels"] == list(MODES[1].labels)
    assert about["modes"][2] == {"name": "day", "labels": None}
    with pytest.raises(ArchiveError, match="modes are not valid: the mode 'a' has size 20, and there are 19 labels"):
        three_factors(modes=(Mode("a", ("x",) * 19), *MODES[1:])).save(tmp_path / "r.partwise")
    with pytest.raises(ArchiveError, match="what it says of the modes is not valid"):
        three_factors(modes=(Mode("a", (1.0, "x") * 10), *MODES[1:])).save(tmp_path / "r.partwise")


@pytest.mark.usefixtures("plain_pictures")
def test_a_page_of_three_modes(tmp_path, plain_pictures):
    result = three_factors(modes=MODES)
    page = build(result, "Title")
    table = page["found"]["table"]
    assert table["modes"] == ["person", "nm", "day"]
    assert table["named"] == ["highest at: nm"]  # all days are alike
    first = table["lines"][0]
    assert first["top"][0].split(", ")[0] == f"{MODES[1].labels[np.argmax(result.factors[1][:, 0])]:g}"
    assert first["used"][2] == "100.0%"
    assert [mode["mode"] for mode in page["found"]["cards"][0]["modes"]] == ["nm", "day"]
    samples = page["holders"]["top"][0]["samples"]
    assert samples[0]["name"] == f"p{np.argmax(result.factors[0][:, 0])}"
    text = result.report(tmp_path / "page.html").read_text()
    assert "highest at: nm" in text and "day used" in text
    for options in ({"image_shape": (3, 4)}, {"columns": 2}, {"feature_names": list("abc")}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} is for matrices, and X has 3 modes"):
            result.report(tmp_path / "other.html", **options)
    tied = replace(result, factors=(np.ones((4, 2)),) * 3, symmetric=True, modes=())
    assert dict(build(tied, "Title")["asked"])["model"] == "X ~ [[A, ..., A]], A being all factors"
    many = replace(result, factors=tuple(np.ones((n, 70)) for n in result.shape))
    assert build(many, "Title")["found"]["not_shown"] == 10


def test_all_modes_in_one_picture():
    result = three_factors(modes=MODES)
    figure = result.plot.modes()
    axes = np.reshape(figure.axes, (2, 3))
    assert [ax.get_title() for ax in axes[0]] == ["person", "nm", "day"]
    (curve,) = axes[1, 1].lines
    assert np.array_equal(curve.get_xdata(), MODES[1].labels)
    assert curve.get_ydata() == pytest.approx(result.factors[1][:, 1] / result.factors[1][:, 1].max())
    heaviest = [f"p{i}" for i in np.argsort(-result.factors[0][:, 0])[:3]]
    assert axes[0, 0].texts[0].get_text().split("\n") == heaviest
    assert len(axes[0, 2].patches) == 5
    assert f"{result.shares[0]:.0%}" in axes[0, 0].get_ylabel()
    with pytest.raises(ValueError, match=r"plot.parts is for matrices, and X has 3 modes: use plot.modes\(\)"):
        result.plot.parts()
    assert len(fit(COUNTS, "frobenius").plot.modes().axes) == 4


def test_tensorly_takes_the_model():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tensorly.cp_tensor", None)
        with pytest.raises(ImportError, match="to_tensorly needs TensorLy: pip install tensorly"):
            three_factors().to_tensorly()
    pytest.importorskip("tensorly", reason="TensorLy is not installed")
    result = three_factors()
    cp = result.to_tensorly()
    assert np.allclose(cp.to_tensor(), result.reconstruct())
    assert np.allclose(cp.weights, result.weights)
    assert all(np.allclose(np.linalg.norm(A, axis=0), 1) for A in cp.factors)


@pytest.mark.parametrize(
    "size, mode", [pytest.param(20, 0, id="the heaviest", marks=pytest.mark.slow), pytest.param(5, 2, id="all of them")]
)
def test_dollars_are_no_formula(size, mode, tmp_path):
    odd = Mode("$\\frac$ a_$", tuple(f"${i}\\$ ^$" for i in range(size)))
    result = three_factors(modes=tuple(odd if i == mode else other for i, other in enumerate(MODES)))
    result.report(tmp_path / "page.html")
    figure = result.plot.modes()
    figure.canvas.draw()
    assert figure.axes[mode].get_title() == odd.name


def test_factorize_takes_names_of_modes(plain_pictures):
    result = fit(COUNTS, "frobenius", modes={"gene": None, "day": range(12)})
    assert result.modes == (Mode("gene"), Mode("day", tuple(range(12))))
    assert build(result, "Title")["found"]["table"]["named"] == ["highest at: day"]
    assert fit(COUNTS, "frobenius").modes == ()
    with pytest.raises(ValueError, match="the mode 'day' has size 12, and there are 3 labels for it"):
        fit(COUNTS, "frobenius", modes={"gene": None, "day": range(3)})


@pytest.mark.parametrize("loss", ["frobenius", "kl", "l1", "huber"])
def test_transform_is_that_of_the_estimator(loss):
    model = pw.NMF(2, loss=loss, alpha_W=0.01, l1_ratio=1, max_iter=1000, random_state=0).fit(COUNTS)
    new = COUNTS[::-1][:7]
    assert np.array_equal(model.result_.transform(new), model.transform(new))


def test_transform_gives_back_the_rows_that_were_fitted():
    """With the parts held rows are a convex problem: those of a converged fit are its solution, in its scale."""
    result = pw.factorize(COUNTS, 2, normalize=("H", "max"), tol=1e-8, random_state=0)
    W = result.transform(sparse.csr_array(COUNTS))
    assert np.allclose(W, result.W, atol=1e-5 * result.W.max())
    assert np.array_equal(result.inverse_transform(W), W @ result.H)
    holes = np.where(RNG.uniform(size=COUNTS.shape) < 0.2, np.nan, COUNTS)
    mask = ~np.isnan(holes)
    assert np.allclose(result.transform(holes), result.transform(np.nan_to_num(holes), mask=mask))
    weights = (None, mask[0] + 0.5)
    assert not np.allclose(result.transform(COUNTS, weights=weights), W)


def test_transform_takes_slices_of_a_tensor():
    cube = pw.datasets.make_cp((8, 5, 4), 2, random_state=0).X
    result = pw.factorize(cube, 2, tol=1e-8, random_state=0)
    A = result.transform(cube[:3])
    assert np.allclose(A, result.factors[0][:3], atol=1e-5)
    assert np.allclose(result.inverse_transform(A), cube[:3], atol=1e-4)
    with pytest.raises(ValueError, match=r"slices of shape \(5, 4\)"):
        result.transform(cube[:, :4])


def test_transform_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="rows and columns are the same items"):
        pw.factorize(COUNTS @ COUNTS.T, 2, symmetric=True, max_iter=3, tol=0).transform(COUNTS)
    with pytest.raises(ValueError, match="X has 5 features, and the parts have 12"):
        fit(COUNTS, "frobenius").transform(COUNTS[:, :5])
    with pytest.raises(ValueError, match=r"weights of shape \(n_samples, 2\)"):
        fit(COUNTS, "frobenius").inverse_transform(COUNTS)
    seen = fit(COUNTS, "frobenius", structure_W=s.Smooth(0.1))
    with pytest.warns(UserWarning, match="speaks of the training samples.*transform takes any W"):
        assert (seen.transform(-COUNTS) < 0).any()
    with pytest.warns(UserWarning, match="transform takes W to be nonnegative only"):
        assert not fit(COUNTS, "frobenius", structure_W=s.NonNegative() & s.Smooth(0.1)).transform(-COUNTS).any()


class Annotated:
    """As much of an AnnData object as is read."""

    def __init__(self, frame):
        self.X, self.obs_names, self.var_names, self.shape = frame.to_numpy(), frame.index, frame.columns, frame.shape


def test_names_come_from_frames_and_stay(tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows, columns = tuple(f"s{i}" for i in range(20)), tuple(f"gene <{j}>" for j in range(12))
    frame = pd.DataFrame(COUNTS, index=rows, columns=columns)
    options = {"max_iter": 3, "tol": 0, "random_state": 0}
    for given in (frame, Annotated(frame)):
        assert pw.factorize(given, 2, normalize="H", **options).names == (rows, columns)
    assert pw.factorize(pl.DataFrame(COUNTS, schema=list(columns)), 2, **options).names == (None, columns)
    assert pw.factorize(pd.DataFrame(COUNTS), 2, **options).names == (None, None)
    assert pw.factorize(frame, 2, modes={"a": None, "b": range(12)}, **options).names == (None, tuple(range(12)))
    for model in (pw.NMF(2, tol=0.1), pw.Dictionary(2, nonzeros=1, tol=0.1), pw.NTF(2, tol=0.1)):
        result = model.fit(frame).result_
        assert load(result.save(tmp_path / "x.partwise")).names == result.names == (rows, columns)


def test_transform_matches_features_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(COUNTS, columns=[f"f{j}" for j in range(12)])
    result = pw.factorize(frame, 2, random_state=0)
    expected = result.transform(frame)
    mixed = frame.assign(other=1.0)[["other", *reversed(frame.columns)]]
    assert np.array_equal(result.transform(mixed), expected)
    assert np.array_equal(result.transform(COUNTS), expected)
    with pytest.raises(ValueError, match="X lacks 2 of the 12 features that were fitted: 'f0', 'f3'"):
        result.transform(frame.drop(columns=["f3", "f0"]))
    twice = frame.set_axis(["f0", *frame.columns[:-1]], axis=1).assign(f11=1.0)
    with pytest.raises(ValueError, match="some names stand more than once"):
        result.transform(twice)


def test_a_result_says_where_it_comes_from(tmp_path):
    options = {"loss": "kl", "structure_W": s.NonNegative(), "mask": COUNTS >= 0, "max_iter": 3, "tol": 0}
    result = pw.factorize(COUNTS, 2, **options, random_state=np.int64(7))
    about = result.provenance
    words = "loss='kl', structure_W=NonNegative(), mask=<ndarray of shape (20, 12)>, max_iter=3, tol=0, random_state=7)"
    assert about.call == f"partwise.factorize(X, 2, {words}"
    assert (about.version, about.seed, about.settings["init"]) == (pw.__version__, 7, "nndsvda")
    assert load(result.save(tmp_path / "x.partwise")).provenance == about
    assert json.loads(json.dumps(summary(result)))["provenance"] == about.as_dict()


def test_fingerprints_tell_data_and_what_counts_apart():
    other = COUNTS.copy()
    other[3, 4] += 1
    weights = np.where(COUNTS > 3, 2.0, 1.0)
    holes = np.where(COUNTS > 3, np.nan, COUNTS)
    calls = [
        (COUNTS, {}),
        (other, {}),
        (COUNTS, {"weights": weights}),
        (COUNTS, {"weights": (np.arange(1.0, 21.0), None)}),
    ]
    calls += [(holes, {}), (COUNTS.astype(np.float32), {}), (sparse.csr_array(COUNTS), {})]
    prints = [fit(X, "frobenius", max_iter=1, **words).provenance.data["fingerprint"] for X, words in calls]
    assert len(set(prints)) == len(calls)
    assert fit(COUNTS.copy(), "kl").provenance.data["fingerprint"] == prints[0]
