"""How parts are shown, who has them, where the model fails, and what notebooks show."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise.data.names import Mode
from partwise.kernels.compiling import STOPWATCH, Stopwatch, compile_seconds
from partwise.result.forms import axis_of, contributions, distinctive, exclusive, form_of, peaks
from partwise.result.plots.codes import BINS, groups_of, ordered
from partwise.result.residual import data_of, residual_of
from partwise.run.limits import Clock

from .trials.losses import Huber as OwnHuber

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(RNG.gamma(0.5, size=(30, 3)) @ RNG.gamma(0.5, size=(3, 14)) * 5).astype(float)
WORDS = {"documents": [f"d{i}" for i in range(30)], "words": [f"w{j}" for j in range(14)]}
TOPICS = pw.factorize(COUNTS, 3, loss="kl", modes=WORDS, random_state=0)
SMOOTH = np.cumsum(RNG.normal(size=(50, 2)), axis=0)
ROUGH = RNG.uniform(size=(50, 2))


# -- forms -----------------------------------------------------------------------------------------------

FORMS = {
    "pixels": (ROUGH, None, (5, 10), "image"),
    "words": (SMOOTH, tuple(f"w{j}" for j in range(50)), None, "list"),
    "wavelengths": (ROUGH, tuple(range(400, 450)), None, "curve"),
    "falling wavenumbers": (ROUGH, tuple(range(450, 400, -1)), None, "curve"),
    "text of wavelengths": (ROUGH, tuple(f"{401 + 3.1 * j:.1f}" for j in range(50)), None, "curve"),
    "text in even steps": (ROUGH, tuple(map(str, range(400, 900, 10))), None, "curve"),
    "text of row numbers": (SMOOTH, tuple(map(str, range(50))), None, "list"),
    "text of identifiers": (SMOOTH, tuple(str(7 + j * j) for j in range(50)), None, "list"),
    "text with underscores": (SMOOTH, tuple(f"1_{j}" for j in range(50)), None, "list"),
    "numbers of genes": (SMOOTH, tuple(RNG.permutation(50).tolist()), None, "list"),
    "dates": (
        ROUGH,
        tuple(f"2024-01-{d:02}" for d in range(1, 32)) + tuple(f"2024-02-{d:02}" for d in range(1, 20)),
        None,
        "curve",
    ),
    "no dates": (ROUGH, tuple(f"2024-99-{d:02}" for d in range(50)), None, "list"),
    "smooth, without names": (SMOOTH, None, None, "curve"),
    "rough, without names": (ROUGH, None, None, "list"),
    "few": (SMOOTH[:5], tuple(range(5)), None, "list"),
    "zeros": (np.zeros((50, 2)), None, None, "list"),
}


@pytest.mark.parametrize("A, labels, image_shape, expected", FORMS.values(), ids=FORMS)
def test_forms(A, labels, image_shape, expected):
    assert form_of(A, labels, image_shape) == expected
    assert form_of(A, labels, image_shape, "list") == "list"


def test_forms_that_there_are_not():
    with pytest.raises(ValueError, match="show must be one of 'image', 'curve', 'list', or None; got 'bars'"):
        TOPICS.plot.parts(show="bars")
    with pytest.raises(ValueError, match=r"show='image' needs image_shape=\(height, width\)"):
        TOPICS.plot.parts(show="image")


def test_dates_are_an_axis():
    place = axis_of(("2024-01-31", "2024-02-01"))
    assert (place[1] - place[0]).astype("timedelta64[D]").astype(int) == 1


def test_what_is_special_to_a_part():
    A = RNG.uniform(size=(20, 4)) * (RNG.uniform(size=(20, 4)) < 0.6)
    P = A / A.sum(axis=0)
    for j in range(20):
        for k in range(4):
            p, others = P[j, k], np.delete(P[j], k)
            expected = 0.0
            if p > others.max():  # the nearest rival says least
                rivals = np.maximum(others, np.finfo(float).tiny)
                expected = min(p * np.log(p / rivals) - p + others)
            assert distinctive(A)[j, k] == pytest.approx(expected, rel=1e-9, abs=1e-300)
            assert exclusive(A)[j, k] == pytest.approx(p / P[j].sum() if P[j].sum() else 0)
    assert np.array_equal(distinctive(A[:, :1]), A[:, :1] / A[:, :1].sum())


def test_peaks_are_local_maxima_by_height():
    assert peaks(np.array([0, 5, 5, 0, 9, 1, 0.5, 3.0]), 3).tolist() == [4, 1, 7]
    assert peaks(np.array([2.0, 1.0]), 3).tolist() == [0]


def test_contributions_are_shares_of_the_model():
    model = [np.outer(TOPICS.W[:, k], TOPICS.H[k]) for k in range(3)]
    expected = np.array([part.sum(axis=1) for part in model]).T / sum(model).sum(axis=1)[:, None]
    assert contributions(TOPICS.factors) == pytest.approx(expected)


# -- who has the parts -----------------------------------------------------------------------------------


def test_samples_are_ordered_by_group_and_leading_part():
    shares, labels = RNG.dirichlet(np.ones(4), 1000), RNG.integers(0, 3, 1000)
    columns, ends = ordered(shares, groups_of(labels, 1000))
    assert sorted(np.concatenate(columns)) == list(range(1000))
    assert abs(len(columns) - BINS) <= 3
    assert ends[-1] == len(columns)
    for group, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        members = np.concatenate(columns[first:last])
        assert (labels[members] == group).all()
        assert (np.diff(shares[members].argmax(axis=1)) >= 0).all()


@pytest.mark.parametrize(
    "labels, message",
    [
        (["a"] * 3, "one for each sample: there are 30 samples, and 3 labels"),
        ("abc", "a list of one label"),
        (3, "a list"),
        ({"a"}, "a list"),
        ([["a"]] * 30, "a list"),
    ],
)
def test_labels_that_do_not_fit(labels, message, tmp_path):
    for draw in (TOPICS.plot.codes, lambda labels: TOPICS.report(tmp_path / "page.html", labels=labels)):
        with pytest.raises((ValueError, TypeError), match=message):
            draw(labels=labels)


def test_labels_are_named_in_order():
    groups = groups_of([10, 2, None, float("nan"), "x"], 5)
    assert groups.names == ["2", "10", "(none)", "x"]
    assert groups.of.tolist() == [1, 0, 2, 2, 3]
    many = ordered(RNG.dirichlet(np.ones(3), 2000), groups_of(range(2000), 2000))[0]
    assert len(many) == BINS


def test_the_heat_map_begins_at_0():
    many = pw.factorize(COUNTS, 24, max_iter=1, tol=0, structure_H="nonnegative & l1(1)", random_state=0)
    (drawn,) = many.plot.codes(show="list").axes[0].images
    assert drawn.get_clim()[0] == 0
    assert drawn.get_clim()[1] == pytest.approx(drawn.get_array().max())


def test_pictures_of_codes():
    groups = TOPICS.plot.codes(labels=list("abc") * 10).axes[0]
    assert [text.get_text() for text in groups.get_xticklabels()] == ["a", "b", "c"]
    assert [band.get_gid() for band in groups.collections] == ["codes-1", "codes-2", "codes-3"]
    few = TOPICS.plot.codes().axes[0]
    assert sorted(text.get_text() for text in few.get_xticklabels()) == sorted(WORDS["documents"])
    timed = replace(TOPICS, modes=(Mode("s", tuple(range(30))), TOPICS.modes[1]))
    assert len(timed.plot.codes().axes) == 3
    many = pw.factorize(COUNTS, 24, max_iter=1, tol=0, structure_H="nonnegative & l1(1)", random_state=0)
    assert len(many.plot.codes(show="list").axes[0].images) == 1


# -- what is in a part -----------------------------------------------------------------------------------


def test_features_by_size_and_by_what_is_special():
    axes = TOPICS.plot.features(n=4).axes
    assert [text.get_text() for text in axes[0].get_yticklabels()] == [f"w{j}" for j in np.argsort(-TOPICS.H[0])[:4]]
    special = TOPICS.plot.features(n=1, specific=True).axes
    assert [ax.get_yticklabels()[0].get_text() for ax in special] == [
        f"w{j}" for j in distinctive(TOPICS.factors[1]).argmax(axis=0)
    ]
    with pytest.raises(ValueError, match="n, the features to name, must be a whole number >= 1"):
        TOPICS.plot.features(n=0)
    signed = replace(TOPICS, factors=(TOPICS.factors[0], -TOPICS.factors[1]))
    with pytest.raises(ValueError, match="have negative entries"):
        signed.plot.features(specific=True)


def test_notebooks_show_pictures_without_being_told():
    assert TOPICS.plot.features()._repr_png_().startswith(b"\x89PNG")


# -- where the model fails -------------------------------------------------------------------------------

LOSSES = ["frobenius", "kl", "l1", "huber", 1.5]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_the_loss_by_row_and_column(loss, store):
    result = pw.factorize(store(COUNTS), 2, loss=loss, max_iter=20, tol=0, random_state=0)
    found = residual_of(result, data_of(result, store(COUNTS)))
    by_row = [result.loss.value(x, y, 1.0) for x, y in zip(COUNTS, result.W @ result.H, strict=True)]
    by_column = [result.loss.value(x, y, 1.0) for x, y in zip(COUNTS.T, (result.W @ result.H).T, strict=True)]
    assert np.sum(by_row) == pytest.approx(result.fit)
    assert found.shares(0) == pytest.approx(np.divide(by_row, result.fit), rel=1e-9, abs=1e-9)
    assert found.shares(1) == pytest.approx(np.divide(by_column, result.fit), rel=1e-9, abs=1e-9)
    assert 1 - found.losses[1].sum() / found.sizes[1].sum() == pytest.approx(result.explained)
    scaled = residual_of(
        replace(result, factors=(1e100 * result.W, 1e100 * result.H.T)), data_of(result, 1e200 * COUNTS)
    )
    if loss != "huber":  # whose delta is in the units of X
        assert scaled.shares(0) == pytest.approx(found.shares(0), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_the_loss_counts_what_the_fit_counts(loss):
    X = np.where(RNG.uniform(size=COUNTS.shape) < 0.2, np.nan, COUNTS)
    weights = (RNG.uniform(1, 2, 30), None)
    result = pw.factorize(X, 2, loss=loss, weights=weights, random_state=0)
    found = residual_of(result, data_of(result, X, weights=weights))
    lost = weights[0][:, None] * result.loss.entrywise(np.nan_to_num(X), result.W @ result.H) * ~np.isnan(X)
    assert found.shares(0) == pytest.approx(lost.sum(axis=1) / lost.sum())
    assert found.shares(1) == pytest.approx(lost.sum(axis=0) / lost.sum())
    assert np.isnan(found.data).sum() == result.n_missing


def test_of_large_data_some_rows_are_looked_at(monkeypatch):
    monkeypatch.setattr("partwise.result.residual.MOST", 140)
    found = residual_of(TOPICS, data_of(TOPICS, COUNTS))
    assert found.sampled
    assert found.rows.tolist() == sorted(set(found.rows.tolist()))
    assert (len(found.rows), found.rows[0], found.rows[-1]) == (10, 0, 29)
    assert np.array_equal(found.data, COUNTS[found.rows])


def test_a_users_own_loss_has_a_residual():
    result = pw.factorize(COUNTS, 2, loss=OwnHuber(0.5), max_iter=20, tol=0, random_state=0)
    lost = [result.loss.value(x, y) for x, y in zip(COUNTS, result.W @ result.H, strict=True)]
    assert residual_of(result, data_of(result, COUNTS)).shares(0) == pytest.approx(np.divide(lost, np.sum(lost)))


def test_pictures_of_residuals():
    assert [ax.get_title() for ax in TOPICS.plot.residual(COUNTS).axes] == [
        "share of the loss: documents",
        "share of the loss: words",
    ]
    assert len(TOPICS.plot.residual(COUNTS, (2, 7)).axes) == 3 * 8
    assert len(TOPICS.plot.residual(COUNTS, show="curve").axes) == 4
    tensor = pw.factorize(COUNTS.reshape(5, 6, 14), 2, random_state=0)
    assert len(tensor.plot.residual(COUNTS.reshape(5, 6, 14)).axes) == 3
    with pytest.raises(ValueError, match=r"X has shape \(3, 14\), but this result is of one of shape \(30, 14\)"):
        TOPICS.plot.residual(COUNTS[:3])


# -- notebooks -------------------------------------------------------------------------------------------


def test_what_a_notebook_shows():
    hostile = replace(TOPICS, modes=(TOPICS.modes[0], Mode("words", ("<script>", *WORDS["words"][1:]))))
    text = hostile._repr_html_()
    assert "30 × 14 data in 3 parts" in text
    assert f"The model explains {TOPICS.explained:.1%} of the deviance." in text
    assert "<script>" not in text
    assert text.count("<tr>") == 4
    certificate = TOPICS.certificate._repr_html_()
    assert "The run converged (stationarity" in certificate
    assert "✓" in certificate
    broken = replace(TOPICS.certificate, violations=(0.5, 0.0), zero_components=(1,), unreached=3, stationarity=1.0)
    text = broken._repr_html_()
    for words in ("W by up to 5.0e-01", "Zero everywhere: part 2", "in 3 places", "has not converged"):
        assert words in text


# -- compiling -------------------------------------------------------------------------------------------


def test_the_stopwatch_counts_nested_work_once(monkeypatch):
    now = iter([1.0, 5.0, 10.0, 11.0])
    monkeypatch.setattr("partwise.kernels.compiling.time.perf_counter", lambda: next(now))
    watch = Stopwatch()
    with watch.running(), watch.running():
        pass
    with watch.running():
        pass
    assert watch.total == 5.0


def test_times_leave_out_compiling_and_limits_do_not(monkeypatch):
    clock = Clock(limit=10.0)
    clock.start -= 12
    monkeypatch.setattr(STOPWATCH, "total", compile_seconds() + 8)
    assert clock() == pytest.approx(4, abs=0.5)
    assert clock.compiling == 8
    assert clock.over()


def test_results_say_how_long_compiling_took(tmp_path):
    result = replace(TOPICS, compile_seconds=2.5)
    assert pw.load(result.save(tmp_path / "r.partwise")).compile_seconds == 2.5
    assert "2.5 s before that to compile" in result.report(tmp_path / "page.html").read_text()
