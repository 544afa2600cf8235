"""Tables that are written: they read back with their names, are whole or not there, and refuse what does not fit."""

import json
import os
import resource
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import partwise as pw
from partwise.cli import main
from partwise.io import read, write_result
from partwise.io.tables import WRITERS, write_table
from partwise.io.write import write_json

X = np.random.default_rng(0).gamma(1.0, size=(5, 3))
ROWS, COLUMNS = ["r1", "<b>", "ü", "../x", "=1+1"], ["a", "b,c", 'd"']


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_names_and_bits_come_back(suffix, dtype, tmp_path):
    path = tmp_path / f"x{suffix}"
    write_table(path, X.astype(dtype), COLUMNS, ROWS)
    table = read(path)
    assert (table.row_names, table.column_names) == (ROWS, COLUMNS)
    assert np.array_equal(table.X.astype(dtype), X.astype(dtype))
    write_table(path, X)
    assert np.array_equal(read(path).X, X)


def test_frames_of_pandas_and_polars_out_of_parquet(tmp_path):
    write_table(tmp_path / "x.parquet", X, COLUMNS, ROWS)
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert (list(frame.index), list(frame.columns), frame.index.name) == (ROWS, COLUMNS, None)
    assert pl.read_parquet(tmp_path / "x.parquet").to_series(0).to_list() == ROWS
    write_table(tmp_path / "x.parquet", X, row_names=[400.0, 410.5, 420.0, 430.0, 440.0])
    assert list(pd.read_parquet(tmp_path / "x.parquet").columns) == ["1", "2", "3"]


@pytest.mark.parametrize("suffix", WRITERS)
def test_wrong_numbers_of_names_are_refused(suffix, tmp_path):
    for names, row_names, sentence in ((["a"], None, "1 names for 3 columns"), (None, ["r"] * 6, "6 names for 5 rows")):
        with pytest.raises(ValueError, match=sentence):
            write_table(tmp_path / f"x{suffix}", X, names, row_names)
    assert not list(tmp_path.iterdir())


def test_without_pyarrow_a_sentence(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", X)
    for module in ("partwise.io.tables", "partwise.cli.fit"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="needs pyarrow, pip install"):
        write_table(tmp_path / "y.parquet", X)
    assert main(["fit", str(tmp_path / "x.npy"), "--rank", "2", "--out", str(tmp_path), "--tables", "parquet"]) == 2
    assert "--tables parquet needs pyarrow" in capsys.readouterr().err


def test_the_command_line_writes_parquet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("partwise.cli.deliver.REPORT_NEEDS", ("no such library",))  # a page takes long
    table = X.copy()
    table[0, 0] = np.nan
    write_table("x.parquet", table, COLUMNS, ROWS)
    call = ["fit", "x.parquet", "--rank", "2", "--quiet", "--seed", "0", "--out", "out"]
    assert main([*call]) == 0
    assert sorted(file.name for file in (tmp_path / "out").glob("*.csv")) == ["H.csv", "W.csv"]
    assert main([*call, "--force", "--tables", "parquet", "--impute", "filled.parquet"]) == 0
    assert not list((tmp_path / "out").glob("*.csv"))  # of the run before
    W, H, filled = (read(path) for path in ("out/W.parquet", "out/H.parquet", "filled.parquet"))
    assert (W.row_names, W.column_names) == (ROWS, ["part 1", "part 2"])
    assert (H.row_names, H.column_names) == (["part 1", "part 2"], COLUMNS)
    assert np.array_equal(H.X, np.load("out/H.npy"))
    assert (filled.row_names, filled.column_names) == (ROWS, COLUMNS)
    assert np.isfinite(filled.X).all()
    assert main(["transform", "out/model.partwise", "x.parquet", "--out", "weights.parquet", "--quiet"]) == 0
    assert list(pd.read_parquet("weights.parquet").index) == ROWS


def test_tables_without_names_where_they_are_asked_for(tmp_path):
    result = pw.factorize(X, 2, random_state=0)
    write_result(result, tmp_path)
    assert not list(tmp_path.glob("*.csv"))
    with pytest.raises(ValueError, match="tables must be 'csv' or 'parquet', or None; got 'xlsx'"):
        write_result(result, tmp_path, tables="xlsx")
    write_result(result, tmp_path, tables="csv")
    assert np.array_equal(read(tmp_path / "W.csv").X, result.W)


def limited(size, action):
    """Run something in a process whose files may have so many bytes; what it raised, as text."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            action()
            said = "nothing"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as text:
        return text.read()


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("suffix", [*WRITERS, ".json"])
def test_a_full_disk_leaves_the_file_that_was_there(suffix, tmp_path):
    path, big = tmp_path / f"x{suffix}", np.random.default_rng(0).random((300, 40))
    path.write_bytes(b"before")
    write = (lambda: write_json(path, {"x": big.tolist()})) if suffix == ".json" else (lambda: write_table(path, big))
    said = limited(4096, write)
    assert said.startswith("OSError")
    assert str(path) in said
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


# -- names of frames and arrays with labels, end to end --------------------------------------------------------


def labelled(library):
    if library == "pandas":
        return pd.DataFrame(X, index=ROWS, columns=COLUMNS)
    if library == "polars":
        return pl.DataFrame(X, schema=COLUMNS)
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    return xarray.DataArray(X, dims=["cell", "gene"], coords={"cell": ROWS, "gene": COLUMNS})


@pytest.mark.parametrize("library", ["pandas", "polars", "xarray"])
def test_names_from_objects_to_files(library, tmp_path):
    result = pw.factorize(labelled(library), 2, random_state=0)
    rows = None if library == "polars" else tuple(ROWS)
    assert result.names == (rows, tuple(COLUMNS))
    write_result(result, tmp_path, tables="parquet")
    assert read(tmp_path / "H.parquet").column_names == COLUMNS
    assert read(tmp_path / "W.parquet").row_names == (rows and list(rows))
    about = json.loads((tmp_path / "result.json").read_text())["modes"]
    assert [mode["name"] for mode in about] == (["cell", "gene"] if library == "xarray" else ["samples", "features"])
    new = labelled(library)[:, ::-1] if library == "xarray" else labelled(library)[COLUMNS[::-1]]
    assert np.allclose(result.transform(new), result.transform(X), rtol=1e-3)


def test_an_xarray_of_order_three():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    T = np.random.default_rng(0).gamma(1.0, size=(5, 4, 3))
    labels = {"nm": [400.0, 410.0, 420.0, 430.0], "when": pd.date_range("2020", periods=3)}
    given = xarray.DataArray(T, dims=["sample", "nm", "when"], coords=labels)
    result = pw.factorize(given, 2, random_state=0)
    assert np.array_equal(result.factors[1], pw.factorize(T, 2, random_state=0).factors[1])
    assert [mode.name for mode in result.modes] == ["sample", "nm", "when"]
    assert result.names[:2] == (None, (400.0, 410.0, 420.0, 430.0))
    assert result.names[2][0].startswith("2020-01-01")
    with pytest.raises(TypeError, match="Dataset gives no array"):
        pw.factorize(given.to_dataset(name="x"), 2)
