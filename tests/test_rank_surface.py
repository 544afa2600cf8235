"""How many parts, at the other doors: the command line, the page, and estimators."""

import json
import pickle
import signal
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import partwise as pw
from partwise.cli import main
from partwise.report.selection import build_selection
from partwise.selection import select
from partwise.selection.setting import Setting

X = pw.datasets.make_parts(40, 30, 3, noise=0.1, random_state=0).X
COUNTS = np.random.default_rng(0).poisson(20 * X)
TENSOR = pw.datasets.make_cp((12, 10, 8), 2, noise=0.1, random_state=0).X
NOISE = np.random.default_rng(1).uniform(0.5, 1, size=(30, 20))
FEW = {"n_repeats": 2, "n_starts": 3}
SHORT = ["--max", "4", "--repeats", "2", "--starts", "3"]
SEARCHES = {
    "least squares": partial(pw.select_rank, X, 4),
    "counts": partial(pw.select_rank, COUNTS, 4, loss="kl"),
    "tensor": partial(pw.select_rank, TENSOR, 3),
    "one part": partial(pw.select_rank, NOISE, 3),
}


@cache
def found_in(name):
    """What a search finds, made where it is first asked for."""
    return SEARCHES[name](**FEW)


def interrupting(monkeypatch, function, number):
    """Ctrl-C when a function of `select` is called for this time."""
    calls, original = [], getattr(select, function)

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(select, function, interrupted)


@pytest.fixture(scope="module")
def cut_short():
    with pytest.MonkeyPatch.context() as patch:
        interrupting(patch, "fit_split", 7)  # the first fit with 4 parts
        return pw.select_rank(X, 4, **FEW)


# -- the table as text -----------------------------------------------------------------------------------


def test_columns_are_aligned_and_those_without_numbers_left_out():
    first, *lines = found_in("least squares").text.splitlines()
    assert first.split("  ")[0] == "parts"
    assert "core consistency" not in first
    assert "core consistency" in found_in("tensor").text
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert all(len(line) <= len(first) or line.endswith(("picked", "best")) for line in lines)
    signs = {tuple(at for at, sign in enumerate(line) if sign == "±") for line in lines}
    assert len(signs) == 1
    assert lines[2].endswith("picked, best")
    assert "stability" not in found_in("one part").text


@pytest.mark.parametrize("scale, form", [(2.0**20, ".3e"), (1.0, ".7f"), (2.0**-30, ".3e")])
def test_losses_of_any_size_can_be_read(scale, form):
    found = found_in("least squares")
    rows = tuple(row._replace(held_out=scale**2 * row.held_out, excess=scale**2 * row.excess) for row in found.table)
    assert replace(found, table=rows).loss_format == form


def test_a_drop_that_is_a_small_share_of_the_loss_can_be_read():
    found = found_in("least squares")
    rows = tuple(
        row._replace(held_out=1 + row.excess, excess_se=2e-6 * (row.excess > 0), excess=row.excess / found.drop / 1000)
        for row in found.table
    )
    text = replace(found, table=rows).text
    assert "0.001000 ± 0.000002" in text and "1.000000 ±" in text


def test_a_loss_of_nothing():
    found = pw.select_rank(np.outer(np.arange(1.0, 9), np.ones(6)), 2, **FEW)
    assert found.text.count("\n") == len(found.table)


# -- the command line ------------------------------------------------------------------------------------


def test_the_command(tmp_path, capsys):
    names = [f"gene {j}" for j in range(30)]
    table = "\n".join([",".join(names), *(",".join(map(str, row)) for row in COUNTS)])
    (tmp_path / "counts.csv").write_text(table)
    words = ["rank", str(tmp_path / "counts.csv"), "--loss", "kl", *SHORT]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert found_in("counts").sentence in out
    assert "parts" in out.splitlines()[2]
    assert out.splitlines()[-1].startswith("wrote ")
    assert err == ""
    about = json.loads((tmp_path / "out" / "rank.json").read_text())
    assert about["rank"] == 3
    assert [row["held_out"] for row in about["table"]] == [row.held_out for row in found_in("counts").table]
    assert about["table"][0]["weakest"] is None
    assert about["random_state"] == 0
    same = pw.load(tmp_path / "out" / "rank.partwise")
    assert same.sentence == about["sentence"] == found_in("counts").sentence
    assert np.array_equal(np.load(tmp_path / "out" / "H.npy"), same.result.H)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "How many parts? counts.csv" in page
    assert "gene 7" in page
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sentence"] == about["sentence"]
    assert told["dispersion"] is None  # too few counts are left out to say
    assert told["curves"] == about["curves"]


def test_a_list_of_ranks_of_a_tensor_in_quiet(tmp_path, capsys, plain_pictures):
    np.save(tmp_path / "x.npy", TENSOR)
    options = ["--ranks", "2,3", "--method", "blocks", "--repeats", "2", "--starts", "2", "--quiet"]
    assert main(["rank", str(tmp_path / "x.npy"), *options, "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr() == ("", "")
    about = json.loads((tmp_path / "out" / "rank.json").read_text())
    assert about["candidates"] == [1, 2, 3]
    assert about["method"].startswith("Blocks")
    assert (tmp_path / "out" / "A3.npy").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        (["--ranks", "2,x"], "'2,x' is not a list of whole numbers >= 1, such as 2,4,8"),
        (["--ranks", "2", "--max", "3"], "not allowed with argument"),
        (["--max", "0"], "'0' is not a whole number >= 1"),
        (["--share", "1"], "'1' is not a number between 0 and 1"),
        (["--starts", "1"], "'1' is not a whole number >= 2"),
        (["--method", "elbow"], "invalid choice: 'elbow'"),
        (["--method", "thinning"], "thinning' is for counts under loss='kl'"),
        (["--solver", "greedy"], "finds its number of parts itself"),
        (["--jobs", "0"], "n_jobs"),
        (["--structure", "3:simplex"], "a mode that X does not have"),
        (["--out", "x.npy/out"], "not a folder"),
    ],
)
def test_the_command_refuses_in_one_line(options, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    assert main(["rank", "x.npy", "--quiet", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_ctrl_c_writes_what_is_known_and_a_checkpoint_goes_on(tmp_path, capsys, monkeypatch, plain_pictures):
    np.save(tmp_path / "x.npy", X)
    words, kept = ["rank", str(tmp_path / "x.npy"), *SHORT], str(tmp_path / "kept")
    with monkeypatch.context() as patch:
        interrupting(patch, "fit_start", 2)
        assert main([*words, "--checkpoint", kept, "--out", str(tmp_path / "out")]) == 130
    assert "Interrupted after 4 parts" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"rank.json", "rank.partwise", "report.html"}
    about = json.loads((tmp_path / "out" / "rank.json").read_text())
    assert (about["status"], about["result"]) == ("interrupted", None)
    calls, whole = [], found_in("least squares").sentence
    fit = Setting.factorize
    monkeypatch.setattr(Setting, "factorize", lambda *a, **k: calls.append(1) or fit(*a, **k))
    assert main([*words, "--resume", kept, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentence"] == whole
    assert len(calls) == 3  # two more starts and the last fit
    assert main([*words, "--resume", kept, "--seed", "1"]) == 2
    assert "is a checkpoint of something else: the setting seed" in capsys.readouterr().err


def test_ctrl_c_before_there_is_anything(tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    interrupting(monkeypatch, "fit_split", 1)
    assert main(["rank", str(tmp_path / "x.npy"), "--out", str(tmp_path / "out")]) == 130
    assert "interrupted before there was a result" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# -- the page --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEARCHES)
def test_the_page_says_what_was_found(name, tmp_path, plain_pictures):
    found = found_in(name)
    text = found.report(tmp_path / "page.html", title="A & B <b>").read_text()
    assert "A &amp; B &lt;b&gt;" in text
    assert f'<p class="sentence">{found.sentence}</p>' in text
    assert "http" not in text
    pictures = text.partition('<h1 class="second">')[0].count("<svg")
    assert pictures == (1 if name == "one part" else 3)  # the curve, what came again, and which parts
    assert ("There is nothing to compare" in text) == (name == "one part")
    assert text.count('<tr class="picked">') == 1
    assert f"partwise {pw.__version__}" in text
    assert f"seed {found.random_state}" in text
    assert "What was found" in text
    assert ("core consistency" in text) == (name == "tensor")


def test_the_page_of_a_search_cut_short(cut_short, tmp_path, plain_pictures):
    assert cut_short.result is None
    assert "picked" not in cut_short.text
    (ax,) = cut_short.plot.curve().axes
    assert not any("picked" in text.get_text() for text in ax.get_legend().get_texts())
    text = cut_short.report(tmp_path / "page.html").read_text()
    assert "Interrupted after 3 parts" in text
    assert "interrupted before parts of random starts were compared" in text
    assert text.count("<svg") == 1
    assert "What was found" not in text
    assert "How to quote it" not in text
    assert 'class="picked"' not in text


def test_words_of_the_fit_are_checked(tmp_path):
    with pytest.raises(ValueError, match="has 12 pixels, a part has 30"):
        found_in("least squares").report(tmp_path / "page.html", image_shape=(3, 4))
    with pytest.raises(ValueError, match="there is no folder"):
        found_in("least squares").report(tmp_path / "none" / "page.html")
    assert not list(tmp_path.iterdir())


def test_the_quote_names_a_seed_only_where_there_is_one(plain_pictures):
    found = found_in("least squares")
    assert "seed 0" in build_selection(found, "")["quote"]
    assert "seed not fixed" in build_selection(replace(found, random_state=None), "")["quote"]
    assert "random starts compared" not in build_selection(found_in("one part"), "")["quote"]


# -- estimators ------------------------------------------------------------------------------------------


def test_nmf_finds_the_number_of_parts():
    model = pw.NMF("auto", random_state=0)
    W = model.fit_transform(X)
    same = pw.select_rank(X, random_state=0, solver="auto", max_iter=200)
    assert model.selection_.table[0]._replace(seconds=0) == same.table[0]._replace(seconds=0)
    assert W.shape == (40, 3)
    assert model.components_.shape == (model.n_components_, 30) == (model.selection_.rank, 30)
    assert model.result_.objective <= model.selection_.result.objective  # it goes on from there, to its own tol
    assert model.transform(X[:2]).shape == (2, 3)
    assert list(model.get_feature_names_out()) == ["nmf0", "nmf1", "nmf2"]


def test_the_search_has_the_words_of_the_estimator(monkeypatch):
    told = {}
    monkeypatch.setattr("partwise.selection.select_rank", lambda X, **words: told.update(words) or found_in("counts"))
    weights, mask = np.arange(1.0, 41), np.ones(X.shape, dtype=bool)
    words = {"alpha_W": 0.01, "l1_ratio": 1.0, "structure_H": "box(0, 9)", "n_threads": 1, "max_iter": 50}
    pw.NMF("auto", loss="kl", **words, random_state=3, missing=None).fit(COUNTS, sample_weight=weights, mask=mask)
    assert str(told["loss"]) == "KL()"
    assert "0.3" in str(told["structure_W"])  # 0.01 times the number of features: scikit-learn's scaling
    assert "9" in str(told["structure_H"])
    assert np.array_equal(told["weights"][0], weights)
    assert told["mask"] is mask
    assert (told["missing"], told["n_threads"], told["max_iter"], told["random_state"]) == (None, 1, 50, 3)
    assert (told["solver"], told["progress"]) == ("auto", False)


def test_the_solver_and_the_start_asked_for():
    words = {"solver": pw.solvers.HALS(sweeps=1), "init": "random", "tol": 1e-3, "random_state": 0}
    model = pw.NMF("auto", **words).fit(X)
    assert "HALS(sweeps=1" in model.selection_.result.solver
    again = pw.NMF(model.n_components_, **words).fit(X)
    assert np.array_equal(model.components_, again.components_)
    several = pw.NMF("auto", n_init=2, random_state=0).fit(X)
    assert len(several.result_.objectives) == 2
    with pytest.raises(ValueError, match="finds its number of parts itself"):
        pw.NMF("auto", solver="greedy").fit(X)


def test_given_factors_have_the_last_word():
    start = pw.factorize(X, 2)
    custom = pw.NMF("auto", init="custom", max_iter=500).fit(X, W=start.W, H=start.H)
    for model in (custom, pw.NMF("auto", init=start).fit(X), pw.NMF("auto", init=(start.W, start.H)).fit(X)):
        assert model.n_components_ == 2
        assert model.selection_ is None
    _, H, _ = pw.non_negative_factorization(X, H=start.H, n_components="auto", update_H=False)
    assert H.shape == (2, 30)


def test_none_is_the_number_of_features():
    small = X[:8, :4]
    for model in (pw.NMF(max_iter=500), pw.NMF(None, max_iter=500)):
        assert model.fit(small).n_components_ == 4
        assert model.selection_ is None
    assert pw.non_negative_factorization(small, max_iter=500)[1].shape == (4, 4)
    assert pw.non_negative_factorization(X, n_components="auto", random_state=0)[1].shape == (3, 30)


def test_the_selection_goes_with_its_fit():
    model = pw.NMF("auto", random_state=0).fit(X)
    assert model.set_params(n_components=2).fit(X).selection_ is None


@pytest.mark.slow
def test_without_a_seed_every_search_has_its_own():
    one, two = (pw.NMF("auto").fit(X) for _ in range(2))
    assert one.selection_.random_state is None
    assert not np.array_equal(one.selection_.curves, two.selection_.curves)


@pytest.mark.slow
def test_clones_copies_pipelines_and_grids():
    pipe = make_pipeline(MinMaxScaler(), pw.NMF("auto", random_state=0))
    assert clone(pipe).fit_transform(X).shape[0] == 40
    same = pickle.loads(pickle.dumps(pipe.fit(X)))
    assert same[-1].selection_.sentence == pipe[-1].selection_.sentence
    assert np.array_equal(same.transform(X), pipe.transform(X))

    def fits(model, X, y=None):
        return -np.linalg.norm(X - model.inverse_transform(model.transform(X)))

    grid = GridSearchCV(pw.NMF(random_state=0), {"n_components": [1, "auto"]}, scoring=fits, cv=2).fit(X)
    assert grid.best_params_ == {"n_components": "auto"}
    assert grid.best_estimator_.selection_.rank == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "matrix", [sparse.csr_array(COUNTS), np.where(COUNTS == 3, np.nan, COUNTS)], ids=["csr", "nan"]
)
def test_other_data(matrix):
    assert pw.NMF("auto", loss="kl", random_state=0).fit(matrix).n_components_ == 3


@pytest.mark.parametrize("make, data", [(pw.NMF, X), (pw.NTF, TENSOR)])
def test_ctrl_c_in_the_search_raises(make, data, monkeypatch):
    interrupting(monkeypatch, "fit_split", 7)
    model = make("auto")
    with pytest.raises(KeyboardInterrupt):
        model.fit(data)
    assert not hasattr(model, "selection_")


def test_ntf_finds_the_number_of_parts():
    model = pw.NTF("auto", modes=["subject", "time", "sensor"], random_state=0).fit(TENSOR)
    assert model.n_components_ == model.selection_.rank == 2
    assert [len(A) for A in model.factors_] == [12, 10, 8]
    assert model.selection_.result.modes[1].name == "time"
    assert pickle.loads(pickle.dumps(clone(model).fit(TENSOR))).selection_.rank == 2
    start = pw.factorize(TENSOR, 3)
    for init in (start, list(start.factors)):
        given = pw.NTF("auto", init=init).fit(TENSOR)
        assert (given.n_components_, given.selection_) == (3, None)
    with pytest.raises(ValueError, match="'n_components' parameter of NTF must be"):
        pw.NTF("many").fit(TENSOR)
