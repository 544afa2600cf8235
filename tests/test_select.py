"""The number of parts: what is found, what does not change it, what is said of it, and what cannot be found."""

import json
import math
import signal
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise.data.hiding import entries_at
from partwise.errors import ArchiveError
from partwise.io.archive import read_archive, write_archive
from partwise.io.codec import decode, encode
from partwise.io.write import selection_summary
from partwise.selection import Method, Speckled, Split, speckled
from partwise.selection import select as module
from partwise.selection.jobs import KIND
from partwise.selection.rule import STABLE, Window, growing, ranks_in_turn
from partwise.selection.setting import Setting
from partwise.selection.zeros import drawn_zeros
from partwise.structures import Fixed, Pattern

DATA = pw.datasets.make_parts(60, 40, 4, noise=0.1, random_state=0)
X = DATA.X
COUNTS = np.random.default_rng(0).poisson(20 * X)
TENSOR = pw.datasets.make_cp((12, 10, 8), 2, noise=0.1, random_state=0).X
FEW = {"n_repeats": 2, "n_starts": 3}


@pytest.fixture(scope="module")
def found():
    return pw.select_rank(X, 8)


# -- the rule --------------------------------------------------------------------------------------------


def curve_of(*losses):
    return dict(enumerate(losses, start=1))


def test_window_and_pick():
    """From 5% of the drop to the best; the most parts that come again, or the fewest within 1%."""
    window = Window.of(curve_of(11, 1.6, 1.15, 1.05, 1.005, 1.0, 1.2))
    assert (window.ranks, window.near, window.best) == ((3, 4, 5, 6), 4, 6)
    assert window.pick({6: 0.2, 5: 0.85, 4: 0.9}) == 5
    assert window.pick({6: 0.2, 5: 0.79, 4: 0.1, 3: 0.3}) == 4


def test_a_window_of_one():
    window = Window.of(curve_of(1.0, 2.0, 3.0))
    assert (window.ranks, window.near, window.examined, window.pick({})) == ((1,), 1, (), 1)


def test_few_ranks_of_a_wide_window_are_looked_at():
    window = Window.of(curve_of(100, *np.linspace(2, 1, 20)))
    assert window.examined == (2, 7, 12, 16, 21)


def tried(losses, candidates, patience=2):
    """Ranks in the order in which they are tried, on a curve that is given."""
    curve, order = {}, []
    for rank in ranks_in_turn(candidates, patience, curve):
        order.append(rank)
        curve[rank] = losses(rank)
    return order


def test_ranks_go_up_until_more_do_not_help():
    assert tried(lambda rank: abs(rank - 5), range(1, 31)) == [1, 2, 3, 4, 5, 6, 7]
    assert tried(lambda rank: abs(rank - 5), range(1, 31), patience=1) == [1, 2, 3, 4, 5, 6]
    assert tried(lambda rank: rank, range(1, 31)) == [1, 2, 3]
    assert tried(lambda rank: -rank, [1, 3, 4]) == [1, 3, 4]
    bumps = [9, 8, 8.5, 7, 7.5, 6, 6.5, 6.1, 1]  # patience begins anew with every gain
    assert tried(lambda rank: bumps[rank - 1], range(1, 10)) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_ranks_within_noise_are_given_more_patience():
    """Losses that fall again at 5, after two ranks that are worse, if by less than noise."""
    losses = dict(enumerate([9, 2, 3, 3, 1, 2, 2, 2, 2], start=1))
    curve, order = {}, []
    for rank in ranks_in_turn(range(1, 10), 2, curve, lambda rank: rank in (3, 4)):
        order.append(rank)
        curve[rank] = losses[rank]
    assert order == [1, 2, 3, 4, 5, 6, 7] and tried(losses.get, range(1, 10)) == [1, 2, 3, 4]


@pytest.mark.slow
def test_skewed_data_are_searched_to_the_end():
    """A wild prediction at 3 and 4 parts does not end it, nor do large entries that were left out hide that 5 fit."""
    rng = np.random.default_rng(2)
    skewed = rng.gamma(0.1, 1, (80, 5)) @ rng.gamma(0.1, 1, (5, 60))
    found = pw.select_rank(skewed * (1 + 0.05 * rng.normal(size=skewed.shape)).clip(0), 9)
    assert found.rank == 5 and found.row(5).held_out < 0.1 * found.row(2).held_out


def test_steps_grow_and_are_halved_around_the_best():
    assert list(growing(range(1, 31))) == [*range(1, 11), 12, 14, 16, 19, 22, 26, 30]
    order = tried(lambda rank: abs(rank - 20), range(1, 101))
    assert order[10:] == [12, 14, 16, 19, 22, 26, 17, 20, 21] and 100 not in order
    assert min(order, key=lambda rank: abs(rank - 20)) == 20


# -- what is found ---------------------------------------------------------------------------------------


def test_planted_parts(found):
    assert found.rank == found.best == 4 and found.status == "complete"
    assert found.result.rank == 4 and found.result.converged
    assert pw.metrics.factor_match(found.result, DATA) > 0.97
    assert found.stability.rank == 4 and found.row(4).weakest >= STABLE
    assert found.ranks == (1, 2, 3, 4, 5, 6, 7)  # 5 predicts as well but for noise, and counts half
    assert found.sentence.startswith("4 parts: the held-out error is lowest at 4") and str(found) == found.sentence


def test_the_table(found):
    for row in found.table:
        assert row.excess == pytest.approx(row.held_out - found.row(4).held_out)
        assert row.fits == (3 + 5 if row.rank == 4 else 3) and row.seconds > 0
        assert math.isnan(row.weakest) == (row.rank != 4) and math.isnan(row.core_consistency)
    assert np.all(np.diff([row.training for row in found.table]) < 0)
    assert min(found.table, key=lambda row: row.ic1).rank == 4
    assert found.row(4).excess_se == 0 < found.row(3).excess_se < found.row(3).excess
    assert found.n_fits == 3 * 7 + 5 + 1
    assert found.curves.shape == (3, 7)
    np.testing.assert_allclose(found.curves.mean(axis=0), [row.held_out for row in found.table])


def test_standard_errors_are_those_of_the_held_out_loss():
    """Of 40 seeds, the spread of the mean over samples of the same size is as told, to a factor of 1.5."""
    rng = np.random.default_rng(0)
    rows = [pw.select_rank(1 + 0.1 * rng.normal(size=(60, 20)), 1, n_repeats=1).table[0] for _ in range(40)]
    assert 2 / 3 < np.std([r.held_out for r in rows]) / np.mean([r.se for r in rows]) < 1.5


def test_standard_errors_are_not_of_the_number_of_entries():
    """With the same loss for every entry that is left out the mean does not vary, however many there are in a row."""
    split = Speckled().split(Setting.of(X, "frobenius", (None, None, None), {}, {}), 0.1, 0)
    outcome = split.fit(1, 0, None, None)
    assert len(set(outcome.counted)) > 1
    assert module.standard_error(module.by_group([replace(outcome, held_out=3 * outcome.counted)])) < 1e-12


# a background, which is a part of its own where small entries count as much as others, and noise in proportion
SPECTRA = (DATA.W @ DATA.H + 0.02) * np.random.default_rng(0).gamma(20, 1 / 20, X.shape)
LOSSES = ["frobenius", "kl", 1.5, "itakura-saito", "l1", "huber"]


@pytest.mark.slow_cases("^(?!kl)")
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss(loss):
    found = pw.select_rank(SPECTRA if loss == "itakura-saito" else X, 6, loss=loss, **FEW)
    assert (5 if loss == "itakura-saito" else 4) in found.window and found.result.rank == found.rank


@pytest.mark.slow_cases("float32|csc|list")
@pytest.mark.parametrize("store", [sparse.csr_array, sparse.csc_matrix, np.asfortranarray, list, np.float32])
def test_every_storage(store):
    assert pw.select_rank(store(X), 6, **FEW).rank == 4


def test_tensors():
    found = pw.select_rank(TENSOR, 4, **FEW)
    assert found.rank == 2 and len(found.result.factors) == 3
    assert found.row(2).core_consistency > 90 and math.isfinite(found.row(3).core_consistency)
    coords = np.argwhere(TENSOR > 0)
    listed = pw.select_rank(pw.SparseTensor(coords, TENSOR[tuple(coords.T)], TENSOR.shape), 4, **FEW)
    assert listed.rank == 2 and listed.row(2).core_consistency == pytest.approx(found.row(2).core_consistency, rel=1e-6)


def test_missing_values_and_weights():
    holes = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.2, np.nan, X)
    assert pw.select_rank(holes, 6, **FEW).rank == 4
    weights = np.random.default_rng(0).uniform(0.5, 1, size=X.shape)
    assert pw.select_rank(X, 6, weights=weights, **FEW).rank == 4


def test_structures_hold():
    found = pw.select_rank(X, 6, structure_H="box(0, 0.5)", **FEW)
    assert 4 in found.window and found.result.H.max() <= 0.5


@dataclass(frozen=True)
class Complete(pw.solvers.HALS):
    """A solver that takes no masks."""

    def supports(self, problem):
        return super().supports(problem) if problem.data.complete else "Complete needs X without missing entries"


def test_solvers_that_take_no_masks_have_blocks():
    found = pw.select_rank(X, 6, solver=Complete(), **FEW)
    assert found.method == "Blocks()" and found.rank == 4
    with pytest.raises(ValueError, match="Complete needs X without missing entries"):
        pw.select_rank(X, 6, solver=Complete(), method="speckled")


def test_known_parts(tmp_path):
    """The first two are held, so that there is no fit of one."""
    with pytest.warns(UserWarning, match="ranks are left out that the structures do not go with .*: 1$"):
        found = pw.select_rank(X, 6, structure_H=Fixed(DATA.H[:2]), **FEW)
    assert found.rank == 4 and found.ranks[0] == 2
    np.testing.assert_array_equal(found.result.H[:2], DATA.H[:2])
    assert pw.load(found.save(tmp_path / "rank.partwise")).ranks == found.ranks


# -- what does not change it -----------------------------------------------------------------------------


def same(one, other):
    for row, again in zip(one.table, other.table, strict=True):
        np.testing.assert_array_equal(row[:-1], again[:-1])  # but for the seconds
    assert one.rank == other.rank and np.array_equal(one.curves, other.curves)
    assert all(map(np.array_equal, one.result.factors, other.result.factors))


def test_same_seed_same_bits(found):
    same(found, pw.select_rank(X, 8))
    assert not np.array_equal(found.curves, pw.select_rank(X, 6, random_state=1).curves)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_bits_in_any_number_of_processes(found, n_jobs):
    same(found, pw.select_rank(X, 8, n_jobs=n_jobs))


@pytest.mark.slow
def test_ranks_beyond_the_window_do_not_matter(found):
    same(found, pw.select_rank(X, 30))
    same(found, pw.select_rank(X, [*range(1, 8), 20, 25]))


@pytest.mark.slow
@pytest.mark.parametrize(("data", "loss"), [(X, "frobenius"), (COUNTS, "kl")], ids=["least squares", "counts"])
@pytest.mark.parametrize("unit", [2.0**-400, 1e-3, 7.0, 1e200])
def test_units_do_not_matter(data, loss, unit):
    one, other = (pw.select_rank(data * u, 6, loss=loss, **FEW) for u in (1.0, unit))
    assert (one.rank, one.window, one.ranks) == (other.rank, other.window, other.ranks)


@pytest.mark.parametrize("unit", [1e200, 1e-250])
def test_losses_that_are_no_numbers_in_some_units_are_told_and_kept(unit, tmp_path):
    """The square of an entry is infinite, or 0: nothing is within noise of the best by that."""
    found = pw.select_rank(unit * X, 5, **FEW)
    again = pw.load(found.save(tmp_path / "rank.partwise"))
    assert again.text == found.text and "within noise" not in found.sentence
    assert json.loads(json.dumps(selection_summary(found), allow_nan=False))["rank"] == 4
    table = tuple(row._replace(weakest=0.9 if row.rank == 3 else 0.2) for row in found.table)
    fewer = replace(found, rank=3, table=table, window=(3, 4))
    assert "goes on falling to 4, but from 4 on parts differ" in fewer.sentence


def test_no_error_is_in_the_units_of_what_is_told():
    """Under a loss whose scale is estimated, absolute differences are."""
    of = {loss: Setting.of(X, loss, (None, None, None), {}, {}) for loss in ("huber", "l1")}
    huber, l1 = (module.Search(X, setting, Speckled(), None, None).floor for setting in of.values())
    assert huber == l1 > 0


def test_worse_optima_say_nothing_of_parts():
    """Runs that end within 1% of the best are compared, and three at least."""
    run = pw.factorize(X, 2)

    def kept(*objectives):
        runs = [replace(run, objective=objective) for objective in objectives]
        return [run.objective for run in module.as_good(runs)]

    assert kept(1.02, 1.005, 1.0, 1.009, 1.5) == [1.0, 1.005, 1.009]
    assert kept(1.2, 1.005, 1.0, 1.3) == [1.0, 1.005, 1.2]
    assert kept(-1.0, -0.995, -0.9, -0.999) == [-1.0, -0.999, -0.995]


def test_the_transpose():
    assert pw.select_rank(X.T, 6, **FEW).rank == 4


def test_other_entries_are_left_out_each_time(found):
    setting = Setting.of(X, "frobenius", (None, None, None), {}, {})
    one, other = (Speckled().split(setting, 0.1, seed).test.places for seed in (0, 1))
    assert np.isin(one, other).mean() < 0.3  # a tenth of them, by chance
    assert len(set(found.curves[:, 0])) == 3


def test_masks_are_the_same_for_all_ranks(monkeypatch):
    """Splits are made once, and sent to the fits of every rank."""
    seen, original = [], module.fit_split
    monkeypatch.setattr(module, "fit_split", lambda split, *rest: seen.append(split) or original(split, *rest))
    pw.select_rank(X, 3, **FEW)
    assert len(seen) == 6 and len(set(map(id, seen))) == 2


# -- what is said of it ----------------------------------------------------------------------------------


def test_no_end_in_sight():
    found = pw.select_rank(X, 3, **FEW)
    assert found.no_end and found.sentence.startswith("No end in sight: the held-out error still falls at 3 parts")
    assert "ask for more ranks" in found.sentence


def test_no_end_where_there_are_no_more_ranks():
    found = replace(pw.select_rank(X, 3, **FEW), shape=(60, 3))
    assert found.no_end and "ask for more" not in found.sentence and "more could be X itself" in found.sentence


@pytest.mark.slow
def test_an_end_where_what_is_left_is_next_to_nothing():
    """Without noise the error falls for ever, by less and less, and further parts are any."""
    found = pw.select_rank(pw.datasets.make_parts(60, 40, 3, random_state=0).X, 5)
    assert found.rank == 3 and found.best == 5 and found.sentence.startswith("3 parts: the held-out error goes on")
    swimmer = pw.select_rank(pw.datasets.make_swimmer().X, 20, **FEW)
    assert swimmer.rank == 16 and "16 predict as well, to 1% of the drop" in swimmer.sentence


def test_nothing_beyond_sums():
    noise = np.random.default_rng(0).poisson(np.outer(np.linspace(1, 5, 40), np.linspace(2, 9, 30)))
    found = pw.select_rank(noise, 6, loss="kl", **FEW)
    assert found.rank == 1 and found.stability is None and found.result.rank == 1
    assert found.sentence == "1 part: nothing beyond the row and column sums predicts the entries left out."


def test_one_rank_says_nothing():
    assert pw.select_rank(X, 1).sentence == "1 part: no other number was tried."


@pytest.mark.slow
def test_parts_that_are_not_unique():
    """Factors without a zero: 4 parts predict best, and no two starts find the same."""
    rng = np.random.default_rng(2)
    Y = rng.uniform(size=(200, 4)) @ rng.uniform(size=(4, 100))
    found = pw.select_rank(np.maximum(Y + 0.3 * rng.normal(size=Y.shape), 0), 6)
    assert found.best == 4 and found.row(4).weakest < STABLE
    assert "predict best, but" in found.sentence and "not unique" in found.sentence


def test_fewer_that_come_again(found):
    table = tuple(
        row._replace(held_out=1 + loss, excess=loss, weakest=weakest)
        for row, loss, weakest in zip(
            found.table[:6], (1, 0.5, 0.2, 0.004, 0, 0.1), (math.nan,) * 3 + (0.9, 0.2, math.nan), strict=True
        )
    )
    other = replace(found, table=table, best=5, near=4, window=(4, 5))
    assert other.sentence.startswith(
        "4 parts: the held-out error goes on falling to 5, by 0.4% of its drop, but from 5"
    )
    between = tuple(
        row._replace(weakest=(math.nan, 0.9, math.nan, math.nan, 0.2, math.nan)[i]) for i, row in enumerate(table)
    )
    other = replace(other, rank=2, table=between, window=(2, 3, 4, 5))
    assert "but from 5 on parts differ" in other.sentence  # of 3 and 4 that is not known


@pytest.mark.slow
def test_counts_that_vary_as_poisson():
    """Predictions of a fit are worse than the truth, here by 4.6%, and that is taken off: the mean of 20 searches is
    known to 1.2%."""
    draws = (np.random.default_rng(seed).poisson(20.0, (60, 40)) for seed in range(20))
    assert abs(np.mean([pw.select_rank(draw, 1, loss="kl").dispersion for draw in draws]) - 1) < 0.035


@pytest.mark.slow
def test_counts_that_vary_more_than_poisson():
    rng = np.random.default_rng(0)
    mean = pw.datasets.make_parts(120, 80, 4, random_state=0).X
    mean *= 5 / mean.mean()
    poisson, spread = rng.poisson(mean), rng.poisson(mean * rng.gamma(3, 1 / 3, mean.shape))
    assert abs(pw.select_rank(poisson, 6, loss="kl").dispersion - 1) < 0.1
    found = pw.select_rank(spread, 6, loss="kl")
    assert found.dispersion > 2 and "Counts vary more than Poisson" in found.sentence
    assert math.isnan(pw.select_rank(poisson / 3, 2, loss="kl", **FEW).dispersion)
    assert math.isnan(pw.select_rank(poisson, 2, **FEW).dispersion)


# -- methods ---------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("blocks")
@pytest.mark.parametrize("method", ["speckled", "blocks", "thinning"])
def test_methods_by_name(method):
    found = pw.select_rank(COUNTS, 6, loss="kl", method=method, **FEW)
    assert found.rank == 4 and found.method.lower().startswith(method)


def test_neighbouring_entries():
    assert pw.select_rank(X, 6, method=Speckled(blocks=True), **FEW).rank in (3, 4, 5)


@dataclass(frozen=True)
class Columns(Method):
    """Somebody's own: other entries, drawn their way."""

    name = "columns"

    def split(self, setting, share, seed):
        hidden = np.zeros(setting.shape, bool)
        rng = np.random.default_rng(seed)
        hidden[rng.permutation(setting.shape[0])[:20, None], rng.permutation(setting.shape[1])[:10]] = True
        left = pw.data.observed.observed(setting.given.data.array, mask=~hidden)
        places = np.flatnonzero(hidden)
        values = setting.given.data.array.ravel()[places]
        return speckled.SpeckledSplit.of(setting, left, places, values, np.ones(len(places)))


def test_a_method_of_ones_own():
    assert issubclass(speckled.SpeckledSplit, Split)
    assert pw.select_rank(X, 6, method=Columns(), **FEW).rank == 4


@pytest.mark.slow
def test_large_sparse_counts_by_strata(monkeypatch):
    """A share of the nonzeros, and zeros that stand for all; what is left stands for what is hidden."""
    rng = np.random.default_rng(0)
    W, H = rng.gamma(0.3, size=(300, 4)), rng.gamma(0.3, size=(4, 200))
    counts = sparse.csr_array(rng.poisson(0.4 * W @ H / (W @ H).mean()).astype(float))
    monkeypatch.setattr(speckled, "MOST_HIDDEN", 5000)
    setting = Setting.of(counts, "kl", (None, None, None), {}, {})
    split = Speckled().split(setting, 0.1, 0)
    assert np.count_nonzero(split.test.values) == round(0.1 * counts.nnz)
    left, hidden = split.setting.given.data, split.test
    assert hidden.weights[hidden.values > 0].sum() == pytest.approx(counts.nnz)
    assert hidden.weights[hidden.values == 0].sum() == pytest.approx(
        300 * 200 - counts.nnz, rel=0.05
    )  # four standard errors
    assert not entries_at(split.setting.given, hidden.places)[1].any()  # what is predicted does not count in the fit
    assert left.row_sums(0, 1.0).sum() == pytest.approx(counts.sum(), rel=0.05)
    weights = left.row_weights(0).sum()
    assert weights == pytest.approx(300 * 200 - len(hidden.places) + 0.1 * counts.nnz, rel=1e-3)
    assert pw.select_rank(counts, 7, loss="kl").rank == 4


def test_zeros_stand_for_all():
    """A sum over zeros is met on average, whatever the sums along the modes are."""
    rng = np.random.default_rng(0)
    shape, sums = (40, 30), (rng.gamma(0.5, size=40), rng.gamma(0.5, size=30))
    stored = np.sort(rng.permutation(1200)[:100])
    values = np.outer(*sums).ravel() * rng.uniform(0.5, 1.5, 1200)
    values[stored] = 0
    found = []
    for seed in range(300):
        places, counted = drawn_zeros(shape, sums, stored, 200, seed=seed, most=0.5)
        assert not np.isin(places, stored).any() and np.all(np.diff(places) > 0) and counted.min() >= 2
        found.append(values[places] @ counted)
    assert abs(np.mean(found) - values.sum()) < 4 * np.std(found) / 300**0.5
    assert np.std(found) < 0.25 * values.sum()


# -- kept, cut short, gone on with -----------------------------------------------------------------------


def test_saved_and_loaded(found, tmp_path):
    again = pw.load(found.save(tmp_path / "rank.partwise"))
    assert str(again) == str(found) and again.table[:3] != () and np.array_equal(again.curves, found.curves)
    same(found, again)
    broken = replace(found, window=(9,))
    with pytest.raises(ValueError, match="window is not valid"):
        broken.save(tmp_path / "no.partwise")


def interrupting(monkeypatch, name, number):
    calls, original = [], getattr(module, name)

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(module, name, interrupted)


@pytest.mark.parametrize(("name", "number"), [("fit_split", 5), ("fit_start", 2), ("fit_last", 1)])
def test_ctrl_c_keeps_what_is_known_and_a_checkpoint_goes_on(name, number, tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        interrupting(patch, name, number)
        cut = pw.select_rank(X, 5, checkpoint=path, **FEW)
    whole = pw.select_rank(X, 5, **FEW)
    assert cut.status == "interrupted" and cut.result is None
    last = f"Interrupted in the last fit, that of all of X. {whole.sentence}"
    assert cut.sentence == last if name == "fit_last" else cut.sentence.startswith("Interrupted after")
    assert cut.table[0][:5] == whole.table[0][:5] or name == "fit_split"  # the best may be another by then
    calls, original = [], module.fit_split
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fit_split", lambda *arguments: calls.append(1) or original(*arguments))
        same(whole, pw.select_rank(X, 5, resume=path, **FEW))
    assert len(calls) == {"fit_split": 10 - 4}.get(name, 0)


def test_a_search_of_a_tensor_goes_on(tmp_path):
    """Core consistency is of factors that are forgotten where no other fit starts from them."""
    Y = pw.datasets.make_cp((12, 10, 8), 4, noise=0.05, random_state=0).X
    found = pw.select_rank(Y, 6, checkpoint=tmp_path / "checkpoint", **FEW)
    assert found.best > 3 and found.row(2).core_consistency > 0
    same(found, pw.select_rank(Y, 6, resume=tmp_path / "checkpoint", **FEW))


def test_a_checkpoint_of_something_else(tmp_path):
    path = tmp_path / "checkpoint"
    pw.select_rank(X, 2, checkpoint=path, **FEW)
    for changed in ({"share": 0.2}, {"ranks": 3}, {"loss": "kl"}, {"n_starts": 4}, {"random_state": 1}):
        with pytest.raises(ValueError, match="checkpoint of something else"):
            pw.select_rank(X, **{"ranks": 2, **FEW, **changed}, resume=path)


def test_a_checkpoint_with_fits_that_cannot_be(tmp_path):
    """Files may come from strangers: a sentence, wherever the wrong outcome stands."""
    path, split, start, last = tmp_path / "c", "rank 2, split 1 of 2", "rank 4, start 1 of 3", "rank 4, all of X"
    pw.select_rank(X, 5, checkpoint=path, **FEW)
    about, arrays = read_archive(path, KIND)
    whole = decode(about["outcomes"], arrays)
    one = whole[split]
    wrong = [
        {split: "text"},
        {split: whole[last]},
        {split: replace(one, held_out=np.full(60, np.nan))},
        {split: replace(one, held_out=np.ones((2, 2)))},
        {split: replace(one, counted=0 * one.counted)},
        {split: replace(one, factors=((X, X),))},
        {start: one},
        {last: pw.factorize(X.T, 2)},
        {last: pw.factorize(X, 5)},
    ]
    for change in wrong:
        changed: dict = {}
        tree = encode({**whole, **change}, changed)
        write_archive(path, KIND, {"identity": about["identity"], "outcomes": tree}, changed)
        with pytest.raises(ArchiveError, match=f"what it has for '{next(iter(change))}' cannot be"):
            pw.select_rank(X, 5, resume=path, **FEW)


def test_nothing_known_yet(monkeypatch):
    interrupting(monkeypatch, "fit_split", 1)
    with pytest.raises(KeyboardInterrupt):
        pw.select_rank(X, 5, **FEW)


def test_progress(capsys):
    pw.select_rank(X, 2, progress=True, **FEW)
    assert "fits" in capsys.readouterr().err
    pw.select_rank(X, 2, **FEW)
    assert capsys.readouterr() == ("", "")


# -- what there is little to find in ---------------------------------------------------------------------

POOR = {
    "constant": (np.ones((20, 15)), {}),
    "constant counts": (np.full((20, 15), 3), {"loss": "kl"}),
    "zeros": (np.zeros((20, 15)), {}),
    "one part, constant but for rounding": (np.outer(np.arange(1, 31) ** 0.5, np.arange(1, 21) ** 0.5), {}),
    "very many zeros, none stored": (sparse.csr_array((9000, 9000)), {}),
    "three samples": (X[:3], {}),
    "three samples of counts": (COUNTS[:3], {"loss": "kl"}),
    "two by two": (X[:2, :2], {}),
    "an empty row and column": (np.where((np.arange(60) == 4)[:, None] | (np.arange(40) == 7), 0, X), {}),
    "the same under KL": (np.where((np.arange(60) == 4)[:, None] | (np.arange(40) == 7), 0, COUNTS), {"loss": "kl"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POOR)
def test_poor_data(name):
    data, words = POOR[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pw.select_rank(data, **words, **FEW)
    assert found.sentence.endswith(".") and all(math.isfinite(row.held_out) for row in found.table)
    assert found.rank == 1 or "constant" not in name


def test_a_hidden_row_is_said():
    with pytest.warns(UserWarning, match="nothing is observed in 1 row"):
        found = pw.select_rank(np.where((np.arange(60) == 5)[:, None], np.nan, X), 5, **FEW)
    assert found.rank == 4 and np.isfinite(found.result.W).all()


def test_ranks_above_the_shape():
    with pytest.warns(UserWarning, match=r"ranks above 40, min\(X.shape\), are left out.*: 50$"):
        assert pw.select_rank(X, [3, 4, 5, 6, 50], **FEW).rank == 4


REFUSED = {
    "ranks must be": {"ranks": 0},
    "ranks must be a": {"ranks": "many"},
    "ranks is empty": {"ranks": []},
    "all ranks are above 40": {"ranks": [50, 60]},
    "method must be 'auto'": {"method": "cophenetic"},
    "method must be a name": {"method": 3},
    "share must be": {"share": 1.5},
    "n_starts must be a whole number >= 2": {"n_starts": 1},
    "n_repeats must be": {"n_repeats": 0},
    "patience must be": {"patience": 0},
    "init cannot be stated here": {"init": "random"},
    "counts under loss='kl'": {"method": "thinning"},
    "finds its number of parts itself": {"solver": "greedy"},
    "X can be fitted with none of these numbers of parts: .*4": {"ranks": 2, "structure_W": Pattern([4, 4], 1)},
    "X can be fitted with none .*infinite at zeros": {"loss": "itakura-saito"},
    "unexpected keyword": {"nonsense": 1},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_refusals(sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        pw.select_rank(X, **{"ranks": 3, **FEW, **REFUSED[sentence]})


def test_symmetric_data_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"compare the parts of a few ranks with pw.stability"):
        pw.select_rank(X @ X.T, 3, symmetric=True)


def test_a_row_has_no_choice():
    with pytest.raises(ValueError, match="nothing to choose from"):
        pw.select_rank(X[:1])


# -- the figures promised --------------------------------------------------------------------------------


def planted(seed, counts):
    """Semi-sparse factors: 200 x 100 in 8 parts, with normal noise of 0.3 of the signal, or counts of mean 1."""
    rng = np.random.default_rng([seed, 8])
    Y = rng.gamma(0.5, 1, (200, 8)) @ rng.gamma(0.5, 1, (8, 100))
    if counts:
        return rng.poisson(Y / Y.mean())
    E = rng.normal(size=Y.shape)
    return np.maximum(Y + 0.3 * np.linalg.norm(Y) / np.linalg.norm(E) * E, 0)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [False, True], ids=["least squares", "counts"])
def test_planted_parts_are_found_at_little_cost(counts):
    found = [pw.select_rank(planted(seed, counts), 13, loss="kl" if counts else "frobenius") for seed in range(6)]
    assert sum(one.rank == 8 for one in found) >= 5 and all(abs(one.rank - 8) <= 1 for one in found)
    assert all(one.n_fits <= 45 for one in found if one.rank == 8)


@pytest.mark.slow
def test_no_structure_is_one_part():
    rng = np.random.default_rng(0)
    shuffled = [rng.permuted(planted(seed, counts), axis=0) for seed in range(3) for counts in (False, True)]
    found = [pw.select_rank(Y, 8, loss="kl" if i % 2 else "frobenius").rank for i, Y in enumerate(shuffled)]
    assert found.count(1) >= 5
