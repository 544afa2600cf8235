"""Results in files: exact, and safe to open from strangers."""

import io
import json
import pickle
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_cp, make_parts
from partwise.errors import ArchiveError
from partwise.io import codec
from partwise.io.archive import FORMAT, TEXT, read_archive, write_archive
from partwise.io.write import summary

from .hostile import hostile

PLANTED = make_parts(20, 15, 3, noise=0.1, random_state=0)
RESULT = pw.factorize(PLANTED.X, 3, random_state=0, n_init=2)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"structure_H": s.NonNegative() & s.L1(0.1), "structure_W": s.Box(0, np.inf)},
        {"structure_H": s.NonNegative() & s.Fixed(np.where(np.arange(45).reshape(3, 15) % 2, np.nan, 0.5))},
        {"solver": "gcd(eps=0.1)"},
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_round_trip_is_exact(options, dtype, tmp_path):
    result = pw.factorize(PLANTED.X.astype(dtype), 3, random_state=0, init="random", **options)
    again = pw.load(result.save(tmp_path / "r.partwise"))
    assert np.array_equal(again.W, result.W)
    assert np.array_equal(again.H, result.H)
    assert again.W.dtype == dtype
    for name in (
        "objective",
        "fit",
        "relative_error",
        "data_norm",
        "status",
        "history",
        "solver",
        "reason",
        "objectives",
    ):
        assert getattr(again, name) == getattr(result, name)
    assert again.certificate == result.certificate
    assert repr(again.structures) == repr(result.structures)
    assert repr(again) == repr(result)
    assert str(again.certify(PLANTED.X)) == str(result.certify(PLANTED.X))
    warm = pw.factorize(PLANTED.X.astype(dtype), 3, init=again, max_iter=2, tol=0, **options)
    assert warm.objective <= result.objective * (1 + 1e-5)


@pytest.fixture
def saved(tmp_path):
    return RESULT.save(tmp_path / "r.partwise")


def refuses(path, sentence=""):
    with pytest.raises(ArchiveError, match=sentence) as caught:
        pw.load(path)
    assert str(path) in str(caught.value)


def test_what_is_not_a_file_of_ours(tmp_path, saved):
    refuses(tmp_path / "nothing", "no such file")
    refuses(tmp_path, "no such file")
    (tmp_path / "text").write_text("W, H")
    refuses(tmp_path / "text", "not a whole partwise file")
    (tmp_path / "empty").write_bytes(b"")
    refuses(tmp_path / "empty", "not a whole partwise file")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    refuses(tmp_path / "zip", "not one that partwise wrote")
    write_archive(tmp_path / "other", "checkpoint", {}, {})
    refuses(tmp_path / "other", "holds a checkpoint, not a result")


def test_truncated_anywhere(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole) - 1, len(whole) // 60):
        saved.write_bytes(whole[:length])
        refuses(saved)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_byte_changed_is_noticed_or_harmless(data):
    with tempfile.TemporaryDirectory() as folder:
        path = RESULT.save(Path(folder) / "r.partwise")
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(bytes(content))
        try:
            result = pw.load(path)
        except ArchiveError:
            return
        assert np.array_equal(result.W, RESULT.W)
        assert np.array_equal(result.H, RESULT.H)
        assert result.history == RESULT.history


def rewritten(path, change_text=None, arrays=None, compression=zipfile.ZIP_STORED):
    """The file again with its JSON text or arrays replaced."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    if change_text:
        entries[TEXT] = change_text(entries[TEXT])
    entries.update(arrays or {})
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def npy(array):
    memory = io.BytesIO()
    np.save(memory, array)
    return memory.getvalue()


def change_tree(change):
    def changed(text):
        about = json.loads(text)
        change(about)
        return json.dumps(about).encode()

    return changed


def nested(depth):
    return {"list": [nested(depth - 1)]} if depth else 3


FITS = {
    "plain": lambda: RESULT,
    "structures": lambda: pw.factorize(
        PLANTED.X,
        3,
        structure_W=s.NonNegative() & s.L1(0.1) & s.Sparse(2),
        structure_H=s.Columns({0: s.Box(0, PLANTED.H.max(axis=0))}) & s.NonNegative(),
        random_state=0,
        max_iter=20,
        tol=0.1,
    ),
    "budgets": lambda: pw.factorize(
        PLANTED.X, 3, structure_H=s.GroupSparsity([1, 2], [0.3, 0.5]), max_iter=20, tol=0.1
    ),
    "l1": lambda: pw.factorize(PLANTED.X, 3, loss="l1", solver="weighted_median(exact_blocks=True)", random_state=0),
    "greedy": lambda: pw.factorize(PLANTED.X, 3, solver="greedy(keep=True, prune=2)", random_state=0),
    "tensor": lambda: pw.factorize(
        make_cp((5, 4, 3), 2, random_state=0).X,
        2,
        random_state=0,
        modes={"a": list("vwxyz"), "b": None, "c": [1.5, 2, 3]},
    ),
    "symmetric": lambda: pw.factorize(PLANTED.X @ PLANTED.X.T, 2, symmetric="off-diagonal", random_state=0),
}


@pytest.mark.parametrize("share", [60, *(pytest.param(share, marks=pytest.mark.slow) for share in (20, 1))])
@pytest.mark.parametrize("name", FITS)
def test_anything_replaced_is_noticed_or_harmless(name, share, tmp_path):
    """What is read can be told, handed on and saved again."""
    about, arrays = read_archive(FITS[name]().save(tmp_path / "r.partwise"), "result")
    tried = refused = 0
    for tree, changed in hostile(about["result"], arrays, share):
        path = write_archive(tmp_path / "h.partwise", "result", {"result": tree}, changed)
        tried += 1
        try:
            result = pw.load(path)
        except ArchiveError:
            refused += 1
            continue
        assert all(np.all(np.isfinite(A)) for A in result.factors)
        assert repr(result) and str(result.certificate) and json.dumps(summary(result))
        assert pw.load(result.save(path)).shape == result.shape
    assert refused > tried / 2


def test_a_structure_is_not_a_number(saved):
    rewritten(saved, change_tree(lambda about: about["result"]["fields"].update(structures={"tuple": [3, 4]})))
    refuses(saved, "which is not a tuple")


# -- files of other versions --------------------------------------------------------------------------------

SAMPLES = Path(__file__).parent / "files"  # written by version 0.1.0, format 1


def test_a_result_of_an_earlier_version_is_read():
    result = pw.load(SAMPLES / "greedy-1.partwise")
    assert result.W.shape == (6, 2)
    assert result.relative_error < 1e-6
    assert result.status == "converged"
    assert [step.rank for step in result.path] == [1, 2]
    assert result.certificate.feasible
    assert result.certify(result.W @ result.H).relative_error < 1e-6
    robust = pw.load(SAMPLES / "l1-1.partwise")
    assert isinstance(robust.loss, pw.losses.L1)
    assert str(robust.structures) == "(NonNegative() & L1(0.01), Box(0, 2))"
    assert robust.history[-1].n_iter == robust.n_iter > 0
    assert robust.W.dtype == np.float32


def test_a_field_that_a_file_lacks_gets_its_default(saved):
    rewritten(saved, change_tree(lambda about: about["result"]["fields"].pop("symmetric")))
    assert pw.load(saved).symmetric is False


def test_names_that_are_gone_are_known(saved, monkeypatch):
    def older(about):
        fields = about["result"]["fields"]
        fields["certificate"].update(object="Proof")
        fields["why"], fields["colour"] = fields.pop("reason"), "red"
        fields["history"]["columns"] = ["n_iter", "seconds", "objective", "stationarity"]

    rewritten(saved, change_tree(older))
    refuses(saved, "Record lacks time")
    former = {
        "Proof": "Certificate",
        "Result.why": "Result.reason",
        "Result.colour": None,
        "Record.seconds": "Record.time",
    }
    monkeypatch.setattr(codec, "FORMER", former)
    assert pw.load(saved).reason == RESULT.reason
    assert pw.load(saved).history == RESULT.history


def test_a_newer_version_is_to_be_installed(saved):
    rewritten(saved, change_tree(lambda about: about.update(format=FORMAT + 1, version="9.9")))
    refuses(saved, r"of a newer version of partwise \(9\.9\).*upgrade partwise")
    rewritten(saved, change_tree(lambda about: about.update(format=FORMAT)))
    rewritten(saved, change_tree(lambda about: about["result"]["fields"].update(colour="red")))
    refuses(saved, "Result has colour, unknown to this version: upgrade partwise")


HOSTILE = {
    "objects": ({"arrays": {"array0.npy": npy(np.array([{"a": 1}], dtype=object))}}, "not of numbers"),
    "a pickle": ({"arrays": {"array0.npy": pickle.dumps(print)}}, "not a whole partwise file"),
    "a shape too large": (
        {"arrays": {"array0.npy": npy(np.zeros((20, 3))).replace(b"(20, 3), }", b"(20, 4), }")}},
        "says it has shape",
    ),
    "factors that do not fit": ({"arrays": {"array0.npy": npy(np.zeros((20, 2)))}}, "no whole result"),
    "text for a factor": ({"arrays": {"array0.npy": npy(np.array([b"abc"]))}}, "not of numbers"),
    "truth values for a factor": ({"arrays": {"array0.npy": npy(np.ones((20, 3), bool))}}, "no whole result"),
    "an endless description": (
        {"arrays": {"array0.npy": npy(np.zeros((20, 3))).replace(b"(20, 3), }", b"((((((( }")}},
        "not a whole partwise file",
    ),
    "nesting that JSON can read": (
        {"change_text": change_tree(lambda about: about.update(result=nested(400)))},
        "no whole result",
    ),
    "one array many times": (
        {
            "change_text": change_tree(
                lambda about: about["result"]["fields"].update(objectives={"list": [{"array": "array0"}] * 1000})
            )
        },
        "is missing",
    ),
    "deep nesting": ({"change_text": lambda _: b"[" * 100_000 + b"]" * 100_000}, "not a whole partwise file"),
    "no JSON": ({"change_text": lambda _: b"import os"}, "not a whole partwise file"),
    "a list": ({"change_text": lambda _: b"[]"}, "file format None"),
    "a later format": ({"change_text": change_tree(lambda about: about.update(format=99))}, "file format 99"),
    "a class of its own": (
        {"change_text": change_tree(lambda about: about["result"].update(object="Popen"))},
        "unknown Popen",
    ),
    "another class": (
        {"change_text": change_tree(lambda about: about["result"].update(object="Certificate"))},
        "Certificate lacks",
    ),
    "a missing field": (
        {"change_text": change_tree(lambda about: about["result"]["fields"].pop("history"))},
        "Result lacks history",
    ),
    "a missing array": (
        {"change_text": change_tree(lambda about: about["result"]["fields"].update(history={"array": "array77"}))},
        "array77 is missing",
    ),
    "no result": ({"change_text": change_tree(lambda about: about.update(result=3))}, "no whole result"),
    "compression": ({"compression": zipfile.ZIP_DEFLATED}, "compressed"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name, saved):
    options, sentence = HOSTILE[name]
    rewritten(saved, **options)
    refuses(saved, sentence)
