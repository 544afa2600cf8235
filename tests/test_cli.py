"""The command line on real files."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

import partwise as pw
from partwise import registry, report
from partwise.cli import deliver, main
from partwise.datasets import make_cp, make_parts
from partwise.io import read, write_result
from partwise.result import Result, provenance

X = make_parts(15, 8, 2, random_state=0).X
CUBE = make_cp((6, 5, 4), 2, zeros=0.3, random_state=0).X
pytestmark = pytest.mark.usefixtures("plain_pictures")


def write_csv(path, X, header=None, names=None):
    lines = [
        ",".join(([] if names is None else [name]) + [repr(float(x)) for x in row])
        for name, row in zip(names or [""] * len(X), X, strict=True)
    ]
    path.write_text("\n".join(([",".join(header)] if header else []) + lines) + "\n")


WRITERS = {
    "x.npy": np.save,
    "dense.npz": lambda path, X: np.savez(path, faces=X),
    "sparse.npz": lambda path, X: sparse.save_npz(path, sparse.csr_array(X)),
    "plain.csv": write_csv,
    "named.csv": lambda path, X: write_csv(path, X, ["id", *"abcdefgh"], [f"s{i}" for i in range(len(X))]),
    "header.csv": lambda path, X: write_csv(path, X, list("abcdefgh")),
    "sparse.mtx": lambda path, X: mmwrite(path, sparse.csr_array(X)),
    "dense.mtx": mmwrite,
}


@pytest.mark.parametrize("name, writer", WRITERS.items(), ids=WRITERS)
def test_fit_reads_files(name, writer, tmp_path, capsys):
    writer(tmp_path / name, X)
    out = tmp_path / "deep" / "out"
    assert main(["fit", str(tmp_path / name), "--rank", "2", "--out", str(out), "--max-iter", "3000"]) == 0
    W, H = np.load(out / "W.npy"), np.load(out / "H.npy")
    assert np.linalg.norm(X - W @ H) < 0.01 * np.linalg.norm(X)
    about = json.loads((out / "result.json").read_text())
    assert about["status"] == "converged"
    assert about["certificate"]["feasible"]
    assert about["optimality"]["rigorous"]
    page = (out / "report.html").read_text()
    assert "Where the model fails" in page
    assert ('id="search"' in page) == (name in ("named.csv", "header.csv"))
    assert "converged" in capsys.readouterr().out


def test_options_reach_the_factorization(tmp_path):
    np.savez(tmp_path / "x.npz", a=X, b=X.T)
    out = tmp_path / "out"
    command = [
        "fit",
        str(tmp_path / "x.npz"),
        "--key",
        "b",
        "--transpose",
        "--rank",
        "3",
        "--out",
        str(out),
        "--structure-w",
        "nonnegative & l1(0.1)",
        "--structure-h",
        "box(0, 0.5)",
        "--solver",
        "gcd",
        "--init",
        "random",
        "--n-init",
        "2",
        "--max-iter",
        "4",
        "--tol",
        "0",
        "--seed",
        "3",
        "--title",
        "Mine",
        "--image",
        "2x4",
    ]
    assert main(command) == 0
    about = json.loads((out / "result.json").read_text())
    assert about["structures"] == {"W": "NonNegative() & L1(0.1)", "H": "Box(0, 0.5)"}
    assert about["solver"].startswith("GCD(")
    assert about["n_iter"] == 4
    assert len(about["objectives_of_all_starts"]) == 2
    assert np.load(out / "W.npy").shape == (15, 3)
    assert "<h1>Mine</h1>" in (out / "report.html").read_text()


def bad_files(folder):
    np.save(folder / "x.npy", X)
    np.savez(folder / "two.npz", a=X, b=X)
    np.save(folder / "negative.npy", -X)
    (folder / "broken.npz").write_bytes(b"PK nonsense")
    (folder / "broken.mtx").write_text("1 2 3")
    (folder / "broken.npy").write_bytes(b"nonsense")
    (folder / "text.csv").write_text("1,2\n3,x\n")
    (folder / "ragged.csv").write_text("1,2\n3\n")
    (folder / "names.csv").write_text("a,b\n")
    (folder / "latin.csv").write_bytes("é,b\n1,2\n".encode("latin-1"))
    (folder / "empty.csv").write_text("")
    (folder / "x.parquet").write_text("")
    np.save(folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)


BAD = {
    "missing.npy": "no such file",
    "x.parquet": "x.parquet is empty",
    "two.npz": "holds several arrays: name one with key, on the command line --key (a, b)",
    "negative.npy": "Negative values in data",
    "broken.npz": "broken.npz is damaged",
    "broken.npy": "broken.npy does not begin as .npy files do",
    "objects.npy": "objects.npy is damaged, or does not hold an array of numbers",
    "broken.mtx": "broken.mtx: it does not begin as a Matrix Market file does",
    "text.csv": "text.csv: line 2: 'x' in column 2 is not a number; leave out columns of text",
    "names.csv": "names.csv: it has a row of names and no numbers",
    "latin.csv": "latin.csv: it is not UTF-8 text",
    "ragged.csv": "ragged.csv: line 2: 1 values where the first row has 2",
    "empty.csv": "empty.csv is empty",
}


@pytest.mark.parametrize("name, message", BAD.items(), ids=BAD)
def test_bad_files_get_a_sentence(name, message, tmp_path, capsys):
    bad_files(tmp_path)
    assert main(["fit", str(tmp_path / name), "--rank", "1", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("partwise: ")
    assert message in error
    assert not (tmp_path / "out").exists()


BAD_OPTIONS = {
    "--rank 0": "argument --rank: '0' is not a whole number >= 1; see partwise fit --help",
    "--rank x": "argument --rank: 'x' is not a whole number >= 1",
    "--rank 2.5": "argument --rank: '2.5' is not a whole number >= 1",
    "--threads 0": "argument --threads: '0' is not a whole number >= 1",
    "--n-init -1": "argument --n-init: '-1' is not a whole number >= 1",
    "--max-iter 0": "argument --max-iter: '0' is not a whole number >= 1",
    "--tol nan": "argument --tol: 'nan' is not a number >= 0",
    "--time-limit 0": "argument --time-limit: '0' is not a number of seconds > 0",
    "--target x": "argument --target: 'x' is not a number",
    "--checkpoint-interval -1": "argument --checkpoint-interval: '-1' is not a number >= 0",
    "--seed -1": "argument --seed: '-1' is not a whole number from 0 to 2**32 - 1",
    "--image 3x": "argument --image: '3x' is not HEIGHTxWIDTH, such as 19x19",
    "--image 3x3": "image_shape (3, 3) has 9 pixels, a part has 8",
    "--image 0x8": "image_shape must be a pair of whole numbers",
    "--normalize Q": "argument --normalize: invalid choice: 'Q' (choose from",
    "--key a": "key is for .npz, .h5ad, .h5, .hdf5, .zarr, .mat files only",
    "--los kl": "unrecognized arguments: --los kl; see partwise --help",
    "--quie": "unrecognized arguments: --quie",
    "--solver hal": "Did you mean 'hals'?",
    "--loss kll": "unknown loss 'kll'",
    "--init spam": "unknown init 'spam'",
    "--structure-w sparse": "sparse takes k, per='item'; write sparse(3)",
    "--structure 3:simplex": "--structure 3:simplex is of a mode that X does not have: name one of 1, 2, W, H",
    "--structure simplex": "argument --structure: 'simplex' is not MODE:STRUCTURE, such as '1:simplex'",
    "--structure 1:simplex --structure W:l1(1)": "two structures for the mode W: join them with &, once",
    "--structure 1:simplex --structure-w simplex": "structures says what structure_W and structure_H say",
    "--structure 1:simple": "unknown structure 'simple'",
    "--modes a": "modes must name every mode of X once",
    "--normalize A3": "that X does not have: say balanced, none, W, H, or with a norm such as H:l1",
    "--resume none": "none: no such file",
    "--checkpoint none/run": "is not a folder",
}


@pytest.mark.parametrize("option, message", BAD_OPTIONS.items(), ids=BAD_OPTIONS)
def test_bad_options_get_one_line(option, message, tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    monkeypatch.chdir(tmp_path)
    rank = [] if option.startswith("--rank") else ["--rank", "2"]
    assert main(["fit", "x.npy", *rank, "--out", "out", *option.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith("partwise: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_missing_options_and_commands_get_one_line(tmp_path, capsys):
    for arguments, message in {
        (): "required: COMMAND; see partwise --help",
        ("fits",): "invalid choice: 'fits'",
        ("fit", "x.npy"): "required: --rank, --out; see partwise fit --help",
        ("demo", "--out", str(tmp_path / "file" / "out")): "cannot write to",
        ("bench", "--starts", "0"): "argument --starts: '0' is not a whole number >= 1",
    }.items():
        (tmp_path / "file").write_text("")
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


TROUBLE = {
    "memory": (MemoryError("Unable to allocate 9 GiB"), "not enough memory. Unable to allocate 9 GiB"),
    "recursion": (RecursionError("maximum recursion depth exceeded"), "maximum recursion depth exceeded"),
    "numbers": (FloatingPointError("the objective is not\na finite number"), "the objective is not a finite number"),
    "disk": (OSError(28, "No space left on device", "W.npy"), "W.npy: No space left on device"),
    "no words": (OSError("broken"), "broken"),
}


@pytest.mark.parametrize("error, message", TROUBLE.values(), ids=TROUBLE)
def test_trouble_on_the_way_is_no_traceback(error, message, tmp_path, monkeypatch, capsys):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("partwise.cli.fit.factorize", fails)
    assert fit(tmp_path) == 2
    assert capsys.readouterr().err == f"partwise: {message}\n"


def test_a_broken_pipe_is_quiet():
    """As after `| head -1`: nobody reads what is printed, and Python itself finds that out at the very end."""
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "partwise", "--version"]
    run = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, "")


class Gone(io.StringIO):
    """Standard output that nobody reads."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("stdout, status", [(Gone(), 141), (None, 0)], ids=["broken", "closed"])
def test_without_a_reader_the_work_is_done_all_the_same(stdout, status, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", stdout)
    assert fit(tmp_path, "--json") == status
    assert (tmp_path / "out" / "result.json").exists()
    assert capsys.readouterr().err == ""


def test_what_a_file_holds_may_be_cut_short(tmp_path, monkeypatch, capsys):
    """As `partwise info x.npy | head -1`."""
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr(sys, "stdout", Gone())
    assert main(["info", str(tmp_path / "x.npy")]) == 141
    assert capsys.readouterr().err == ""


def test_parts_that_add_up_to_one(tmp_path):
    assert fit(tmp_path, "--loss", "kl", "--normalize", "H:l1") == 0
    assert np.load(tmp_path / "out" / "H.npy").sum(axis=1) == pytest.approx(1)


def test_folders_that_cannot_be_written_get_a_sentence(tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["fit", str(tmp_path / "x.npy"), "--rank", "2", "--out", str(tmp_path / "x.npy")]) == 2
    assert "cannot write to" in capsys.readouterr().err


def test_unfinished_runs_warn(tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["fit", str(tmp_path / "x.npy"), "--rank", "2", "--max-iter", "2", "--out", str(tmp_path)]) == 0
    assert "partwise: warning: Maximum number of iterations 2 reached" in capsys.readouterr().err


@pytest.mark.slow  # a process of its own, as in test_a_broken_pipe_is_quiet
def test_as_a_module():
    run = subprocess.run([sys.executable, "-m", "partwise", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("partwise ")


CSV = {
    "pandas with its index": (",a,b\n0,2,3\n1,4,5\n", [[2, 3], [4, 5]], ["a", "b"]),
    "a byte order mark": ("\ufeff1,2\n3,4\n", [[1, 2], [3, 4]], None),
    "numbers as names": (",1990,1991\ns1,2,3\ns2,4,5\n", [[2, 3], [4, 5]], ["1990", "1991"]),
    "an id above numbers": ("id,400,401\n1,.5,.25\n", [[1, 0.5, 0.25]], ["id", "400", "401"]),
    "semicolons": ("a;b\n1;2\n", [[1, 2]], ["a", "b"]),
    "tabs": ("1\t2\n3\t4\n", [[1, 2], [3, 4]], None),
    "one column": ("1\n2\n", [[1], [2]], None),
    "quoted names": ('"a, b",c\n1,2\n', [[1, 2]], ["a, b", "c"]),
}


@pytest.mark.parametrize("text, X, names", CSV.values(), ids=CSV)
def test_csv_as_people_have_it(text, X, names, tmp_path):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    table = read(tmp_path / "x.csv")
    assert table.X.tolist() == X
    assert table.column_names == names


def test_the_bound_can_be_skipped(tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["fit", str(tmp_path / "x.npy"), "--rank", "2", "--out", str(tmp_path), "--no-certify"]) == 0
    assert "best possible" not in capsys.readouterr().out
    assert "optimality" not in json.loads((tmp_path / "result.json").read_text())


def fit(tmp_path, *options, rank=2):
    np.save(tmp_path / "x.npy", X)
    arguments = [
        "fit",
        str(tmp_path / "x.npy"),
        "--rank",
        str(rank),
        "--out",
        str(tmp_path / "out"),
        "--force",
        *map(str, options),
    ]
    return main(arguments)


def test_checkpoint_and_resume_give_the_same_files(tmp_path):
    options = ["--init", "random", "--tol", "1e-12", "--threads", "1"]
    assert fit(tmp_path, *options, "--max-iter", 60) == 0
    whole = np.load(tmp_path / "out" / "W.npy")
    kept = tmp_path / "run.partwise"
    assert fit(tmp_path, *options, "--max-iter", 20, "--checkpoint", kept, "--checkpoint-interval", 0.01) == 0
    assert not np.array_equal(np.load(tmp_path / "out" / "W.npy"), whole)
    assert fit(tmp_path, *options, "--max-iter", 60, "--resume", kept) == 0
    assert np.array_equal(np.load(tmp_path / "out" / "W.npy"), whole)
    assert fit(tmp_path, *options, "--resume", kept, rank=3) == 2


def test_json_and_quiet(tmp_path, capsys):
    assert fit(tmp_path, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads((tmp_path / "out" / "result.json").read_text())
    assert err == ""
    assert fit(tmp_path, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_writes_what_was_found(signum, tmp_path):
    """A real signal to a real process."""
    np.save(tmp_path / "x.npy", make_parts(400, 300, 10, noise=0.3, random_state=0).X)
    command = [sys.executable, "-m", "partwise", "fit", "x.npy", "--rank", "20", "--out", "out", "--tol", "0"]
    options = ["--max-iter", "100000000", "--checkpoint", "run.partwise", "--checkpoint-interval", "0.1"]
    with subprocess.Popen(
        [*command, *options], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "run.partwise").exists():
            time.sleep(0.05)
        process.send_signal(signum)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted after" in out
    assert "Traceback" not in err
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "interrupted"
    assert "it was interrupted" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("step", ["certify", "report"])
def test_ctrl_c_while_a_result_is_handed_over_is_not_lost(step, tmp_path, monkeypatch):
    """A real signal in the middle of the certificate, or of the report: all is written, and the status says so."""
    original = getattr(Result, step)

    def pressed(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return original(*arguments, **options)

    monkeypatch.setattr(Result, step, pressed)
    assert fit(tmp_path) == 130
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "W.npy",
        "H.npy",
        "model.partwise",
        "result.json",
        "report.html",
    }


def test_ctrl_c_while_certifying_keeps_the_fit(tmp_path, monkeypatch, capsys):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Result, "certify", pressed)
    assert fit(tmp_path) == 130
    assert (tmp_path / "out" / "W.npy").exists()
    assert "converged after" in capsys.readouterr().out


TENSORS = {
    "x.npy": lambda path: np.save(path, CUBE),
    "x.tns": lambda path: path.write_text(
        "# a tensor\n" + "".join(f"{i + 1} {j + 1} {k + 1} {float(CUBE[i, j, k])!r}\n" for i, j, k in np.argwhere(CUBE))
    ),
    "x.npz": lambda path: np.savez(path, coords=np.argwhere(CUBE), values=CUBE[np.nonzero(CUBE)], shape=CUBE.shape),
}


@pytest.mark.parametrize("name, write", TENSORS.items(), ids=TENSORS)
def test_fit_takes_tensors(name, write, tmp_path, capsys):
    write(tmp_path / name)
    out = tmp_path / "out"
    options = [
        "--structure",
        "A2:box(0, 2)",
        "--structure",
        "time:nonnegative & l1(1e-6)",
        "--modes",
        "who, what ,time",
    ]
    assert main(["fit", str(tmp_path / name), "--rank", "2", "--out", str(out), *options, "--tol", "1e-6"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("read a tensor of 6 x 5 x 4 (")
    factors = [np.load(out / f"A{mode}.npy") for mode in (1, 2, 3)]
    assert np.linalg.norm(np.einsum("iz,jz,kz->ijk", *factors) - CUBE) < 0.01 * np.linalg.norm(CUBE)
    about = json.loads((out / "result.json").read_text())
    assert about["structures"] == {"A1": "NonNegative()", "A2": "Box(0, 2)", "A3": "NonNegative() & L1(1e-06)"}
    assert [mode["name"] for mode in about["modes"]] == ["who", "what", "time"]
    assert "what used" in (out / "report.html").read_text()


BAD_FOR_TENSORS = {
    "--transpose": "--transpose is for matrices, and X has 3 modes",
    "--image 2x2": "--image is for matrices, and X has 3 modes",
    "--structure-w simplex": "--structure-w is for matrices, and X has 3 modes: use --structure MODE:S",
    "--structure 4:simplex": "does not have: name one of 1, 2, 3, A1, A2, A3",
    "--structure time:simplex": "does not have: name one of 1, 2, 3, A1, A2, A3",
    "--normalize H": "does not have: say balanced, none, A1, A2, A3, or with a norm such as A3:l1",
}


@pytest.mark.parametrize("option, message", BAD_FOR_TENSORS.items(), ids=BAD_FOR_TENSORS)
def test_options_that_are_not_for_tensors_get_one_line(option, message, tmp_path, capsys):
    np.save(tmp_path / "x.npy", CUBE)
    command = ["fit", str(tmp_path / "x.npy"), "--rank", "2", "--out", str(tmp_path / "out"), *option.split()]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_scale_of_a_tensor(tmp_path):
    np.save(tmp_path / "x.npy", CUBE)
    command = ["fit", str(tmp_path / "x.npy"), "--rank", "2", "--out", str(tmp_path), "--normalize", "A3:l1"]
    assert main(command) == 0
    assert np.load(tmp_path / "A3.npy").sum(axis=0) == pytest.approx(1)


COUNTS = np.random.default_rng(0).poisson(3 * X)
NAMES = [f"gene {j}" for j in "abcdefgh"]
SAMPLES = [f"s{i}" for i in range(15)]


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    """A folder with x.csv, whose rows and columns have names, and its fit in fit/, without a page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(deliver, "REPORT_NEEDS", ["no such library"])
    write_csv(tmp_path / "x.csv", COUNTS, ["", *NAMES], SAMPLES)
    assert main(["fit", "x.csv", "--rank", "2", "--loss", "kl", "--seed", "3", "--init", "random", "--out", "fit"]) == 0
    return tmp_path


def test_a_result_of_the_command_line_lives_on(fitted):
    result = pw.load("fit/model.partwise")
    assert np.array_equal(result.H, np.load("fit/H.npy"))
    assert result.names == (tuple(SAMPLES), tuple(NAMES))
    weights = read("fit/W.csv")
    assert weights.row_names == SAMPLES
    assert np.array_equal(weights.X, result.W)
    table = read("fit/H.csv")
    assert table.column_names == NAMES
    assert np.array_equal(table.X, result.H)
    assert main(["report", "fit/model.partwise", "--title", "Again"]) == 0
    assert "<h1>Again</h1>" in (fitted / "fit" / "model.html").read_text()


def test_samples_that_are_columns_keep_their_names(fitted):
    assert main(["fit", "x.csv", "--transpose", "--rank", "2", "--out", "turned", "--impute", "filled.csv"]) == 0
    assert pw.load("turned/model.partwise").names == (tuple(NAMES), tuple(SAMPLES))
    assert [line.split(",")[0] for line in (fitted / "turned" / "W.csv").read_text().splitlines()] == ["", *NAMES]
    assert (read("filled.csv").column_names, read("filled.csv").row_names) == (NAMES, SAMPLES)


def test_transform_matches_features_by_name(fitted, capsys):
    order = [3, 1, 0, 2, 7, 6, 5, 4]
    write_csv(fitted / "new.csv", COUNTS[:4, order], [NAMES[j] for j in order])
    np.save("plain.npy", COUNTS[:4])
    for new, out in (("new.csv", "a.csv"), ("plain.npy", "b.npy")):
        assert main(["transform", "fit/model.partwise", new, "--out", out]) == 0
    W = read("a.csv").X
    assert np.array_equal(W, np.load("b.npy"))
    assert np.allclose(W, np.load("fit/W.npy")[:4], rtol=0.05, atol=0.01)
    write_csv(fitted / "few.csv", COUNTS[:4, 2:], NAMES[2:])
    capsys.readouterr()
    assert main(["transform", "fit/model.partwise", "few.csv", "--out", "c.csv"]) == 2
    assert "X lacks 2 of the 8 features that were fitted: 'gene a', 'gene b'" in capsys.readouterr().err
    assert main(["transform", "fit/model.partwise", "new.csv", "--out", "a.csv"]) == 2
    assert "a.csv is there already: name another file, or add --force" in capsys.readouterr().err
    assert main(["transform", "fit/model.partwise", "new.csv", "--out", "a.txt"]) == 2
    assert "tables are written to .csv, .tsv, .parquet, .npy" in capsys.readouterr().err


def test_masks_follow_features_that_are_reordered(fitted):
    mask = np.ones((15, 8))
    mask[:, 0] = 0
    np.savetxt("mask.csv", mask, delimiter=",")
    np.savetxt("turned.csv", mask[:, ::-1], delimiter=",")
    write_csv(fitted / "reversed.csv", COUNTS[:, ::-1], NAMES[::-1])
    for new, hidden, out in (("x.csv", "mask.csv", "a.npy"), ("reversed.csv", "turned.csv", "b.npy")):
        assert main(["transform", "fit/model.partwise", new, "--mask", hidden, "--out", out]) == 0
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))


def test_results_are_not_replaced_unasked(fitted, capsys):
    before = (fitted / "fit" / "result.json").read_bytes()
    for command in ("fit x.csv --rank 3", "rank x.csv --max 2", "stability x.csv --rank 2", "demo"):
        capsys.readouterr()
        assert main([*command.split(), "--out", "fit"]) == 2
        assert "fit holds results already (result.json and model.partwise)" in capsys.readouterr().err
    assert (fitted / "fit" / "result.json").read_bytes() == before
    assert main(["fit", "x.csv", "--rank", "3", "--out", "fit", "--force"]) == 0
    assert np.load("fit/H.npy").shape == read("fit/H.csv").X.shape == (3, 8)
    np.save("plain.npy", COUNTS)
    assert main(["fit", "plain.npy", "--rank", "2", "--out", "fit", "--force"]) == 0
    assert not (fitted / "fit" / "H.csv").exists()


@pytest.mark.parametrize("source", ["fit/result.json", "fit/model.partwise"])
def test_a_fit_is_repeated_to_the_bit(source, fitted, capsys):
    assert main(["fit", "--from", source, "--out", "again"]) == 0
    assert capsys.readouterr().err == ""
    assert np.array_equal(np.load("again/W.npy"), np.load("fit/W.npy"))
    about = json.loads((fitted / "again" / "result.json").read_text())["provenance"]
    assert about["options"] == json.loads((fitted / "fit" / "result.json").read_text())["provenance"]["options"]
    assert main(["fit", "--from", source, "--rank", "3", "--seed", "0", "--out", "other"]) == 0
    assert np.load("other/H.npy").shape == (3, 8)
    assert json.loads((fitted / "other" / "result.json").read_text())["provenance"]["seed"] == 0


def test_a_repetition_says_where_data_differ(fitted, capsys):
    changed = COUNTS.copy()
    changed[0, 0] += 100
    write_csv(fitted / "x.csv", changed, ["", *NAMES], SAMPLES)
    assert main(["fit", "--from", "fit/result.json", "--out", "again"]) == 0
    error = capsys.readouterr().err
    assert "this does not repeat fit/result.json: the highest entry was" in error
    assert "the fingerprint of the entries was" in error
    assert "the shape of X" not in error
    write_csv(fitted / "x.csv", changed[:9], ["", *NAMES], SAMPLES[:9])
    assert main(["fit", "--from", "fit/result.json", "--out", "less"]) == 0
    assert "the shape of X was [15, 8] then, and is [9, 8] now" in capsys.readouterr().err


def test_what_cannot_be_repeated_gets_a_sentence(fitted, capsys):
    (fitted / "bad.json").write_text("{")
    (fitted / "old.json").write_text('{"shape": [3, 4]}')
    (fitted / "odd.json").write_text('{"provenance": {"version": 1}}')
    write_result(pw.factorize(X, 2), fitted / "python")
    for source, message in {
        "none.json": "none.json: no such file",
        "bad.json": "is not a result.json that partwise wrote",
        "odd.json": "is not a result.json that partwise wrote",
        "old.json": "does not say where it comes from",
        "python/result.json": "cannot be repeated by it, but by: partwise.factorize(X, 2)",
    }.items():
        capsys.readouterr()
        assert main(["fit", "--from", source, "--out", "again"]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_every_output_says_where_it_comes_from(fitted, capsys, monkeypatch):
    """A search and the fit that it ends with say when each of them ended; no second passes here."""
    monkeypatch.setattr(provenance, "datetime", SimpleNamespace(now=lambda zone: datetime(2026, 5, 17, tzinfo=zone)))
    course = ["--loss", "kl", "--seed", "3", "--out"]
    assert main(["rank", "x.csv", "--ranks", "1,2", "--repeats", "1", "--starts", "2", *course, "rank"]) == 0
    assert main(["stability", "x.csv", "--rank", "2", "--runs", "2", *course, "stable"]) == 0
    abouts = {
        path: json.loads((fitted / path).read_text())["provenance"]
        for path in (
            "fit/result.json",
            "rank/rank.json",
            "rank/result.json",
            "stable/stability.json",
            "stable/result.json",
        )
    }
    assert main(["fit", "--from", "rank/rank.partwise", "--out", "again"]) == 2
    assert "rank/rank.partwise was not made by partwise fit" in capsys.readouterr().err
    assert len({about["data"]["fingerprint"] for about in abouts.values()}) == 1
    for path, about in abouts.items():
        assert about["version"] == pw.__version__
        assert about["seed"] == 3
        assert about["call"].startswith("partwise ")
        assert "x.csv" in about["call"]
        assert about["date"][:2] == "20"
        assert {"solver", "init", "tol", "max_iter", "rank"} <= set(about["settings"])
        model = pw.load((fitted / path).with_name("model.partwise"))
        assert model.provenance.as_dict() == about
        assert about["data"]["fingerprint"] in json.dumps(report.build(model, "Title")["provenance"])


INFO = {
    "counts": (COUNTS, ["whole numbers from 0 to", "loss: kl", "solver: NewtonKL", "partwise rank x.npy --loss kl"]),
    "numbers": (X, ["15 samples x 8 features", "loss: frobenius", "solver: HALS", "partwise fit x.npy --rank R"]),
    "negative": (X - 1, ["from -1 to", "one factor must be free", "--structure 1:free"]),
    "holes": (np.where(X > 0.5, np.nan, X), [f"missing: {np.count_nonzero(X > 0.5)} entries"]),
    "symmetric": (X.T @ X, ["X is its own transpose; see --symmetric"]),
    "0/1": ((X > 0.5) * 1.0, ["for entries that are 0 or 1"]),
    "tensor": (CUBE, ["read a tensor of 6 x 5 x 4", "entries: 120", "solver: HALS"]),
    "large": (np.zeros((1000, 100)), ["memory: 800 KB for the data, about 1.33 MB for a fit in 10 parts"]),
}


@pytest.mark.parametrize("data, words", INFO.values(), ids=INFO)
def test_info_says_what_a_file_holds_and_how_to_go_on(data, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", data)
    assert main(["info", "x.npy"]) == 0
    said = capsys.readouterr().out
    for word in words:
        assert word in said


@pytest.mark.parametrize("name", ["sparse.npz", "sparse.mtx"])
def test_info_counts_the_zeros_of_sparse_files(name, tmp_path, capsys):
    WRITERS[name](tmp_path / name, np.eye(4))
    assert main(["info", str(tmp_path / name)]) == 0
    assert "entries: 16, listed by nonzeros, 75.0% zeros" in capsys.readouterr().out


def test_tables_of_solvers_and_structures_are_those_of_the_registry(capsys):
    assert main(["solvers"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in registry.SOLVERS)
    assert "newton_kl        kl   " in said
    assert main(["structures"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{registry.EXAMPLES.get(name, name)} " in said for name in registry.STRUCTURES)
    assert "frobenius, l1     Every entry is 0 or 1" in said


@pytest.mark.parametrize("command, offered", [("fit", True), ("stability", True), ("rank", False)])
def test_symmetric_models_are_offered_where_they_are_taken(command, offered, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert ("--symmetric" in capsys.readouterr().out) == offered
