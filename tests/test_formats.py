"""Formats that other libraries write: what is read from each, with names; and that damage ends in a sentence."""

import gzip
import io
import json
import pickle
import sys
import time
import warnings
from pathlib import Path
from subprocess import TimeoutExpired
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmwrite, savemat, wavfile

import partwise as pw
from partwise.cli import main
from partwise.io import read
from partwise.io.readers import READERS, base, numbers

X = np.arange(12.0).reshape(4, 3) % 5
ROWS, COLUMNS = ["r1", "r2", "r3", "ü"], ["a", "b", "<c>"]
TEN_X = {"barcodes.tsv": "AC-1\nAG-1\nCC-1\nTT-1\n", "features.tsv": "E1\tCD3D\tGene\nE2\tCD19\tGene\nE3\tCD19\tGene\n"}


def write_csv(path):
    path.write_text(
        "\n".join([",".join(["", *COLUMNS]), *(",".join([n, *map(str, x)]) for n, x in zip(ROWS, X, strict=True))])
    )


def write_csv_gz(path):
    with gzip.open(path, "wb") as file:
        file.write(
            b"a;b;c\n" + b"".join(b";".join(b"%.1f" % cell for cell in row) + b"\n" for row in X).replace(b".", b",")
        )


def write_parquet(path):
    frame(path).to_parquet(path)


def write_feather(path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"id": ROWS} | {name: X[:, j] for j, name in enumerate(COLUMNS)})
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write(table)


def frame(path):
    pytest.importorskip("pyarrow")
    return pytest.importorskip("pandas").DataFrame(X, ROWS, COLUMNS)


def write_npz(path):
    np.savez(path, X=X, row_names=np.array(ROWS), feature_names=np.array(COLUMNS), year=np.array(2020))


def write_sparse_npz(path):
    memory = io.BytesIO()
    sparse.save_npz(memory, sparse.csr_array(X))
    memory.seek(0)
    with np.load(memory) as arrays:
        np.savez(path, **arrays, obs_names=np.array(ROWS), genes=np.array(COLUMNS))


def write_10x(path):
    memory = io.BytesIO()
    mmwrite(memory, sparse.coo_array(X.T))
    path.write_bytes(gzip.compress(memory.getvalue(), mtime=0) if path.suffix == ".gz" else memory.getvalue())
    for name, text in TEN_X.items():
        (path.parent / f"{name}.gz").write_bytes(gzip.compress(text.encode()))


def write_hdf5(path):
    with pytest.importorskip("h5py").File(path, "w") as file:
        file["scans/counts"] = X
        file["about"] = "made here"
        file["scans/wavelengths"] = [1.0, 2.0, 3.0]


def write_h5ad(path):
    with pytest.importorskip("h5py").File(path, "w") as file:
        write_annotated(file, file.create_group)


def write_annotated(file, group_of):
    for name, values in (("X", X), ("layers/counts", 2 * X)):
        group, matrix = group_of(name), sparse.csr_array(values)
        group.attrs.update({"encoding-type": "csr_matrix", "shape": list(X.shape)})
        group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
    for name, names in (("obs", ROWS), ("var", COLUMNS)):
        frame = group_of(name)
        frame.attrs["_index"] = "names"
        frame["names"] = np.array(names, dtype=object)


def write_10x_h5(path):
    with pytest.importorskip("h5py").File(path, "w") as file:
        group, matrix = file.create_group("matrix"), sparse.csc_array(X.T)
        group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
        group["shape"], group["barcodes"], group["features/name"] = (
            X.T.shape,
            np.array(ROWS, object),
            np.array(COLUMNS, object),
        )


def write_zarr(path, **options):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(str(path), mode="w", **options)
    root["counts"] = X


def write_mat(path):
    savemat(path, {"V": X, "rate": 3.0, "who": "me"}, do_compression=True)


def write_sparse_mat(path):
    savemat(path, {"V": sparse.csc_matrix(X)})


def write_mat73(path):
    with pytest.importorskip("h5py").File(path, "w", userblock_size=512) as file:
        file["V"] = X.T
        file["V"].attrs["MATLAB_class"] = np.bytes_("double")
        matrix, group = sparse.csc_array(X), file.create_group("S")
        group.attrs["MATLAB_sparse"] = np.uint64(4)
        group["data"], group["ir"], group["jc"] = matrix.data, matrix.indices.astype("u8"), matrix.indptr.astype("u8")


def write_wav(path):
    time = np.arange(4000) / 8000
    wavfile.write(path, 8000, (20000 * np.sin(2 * np.pi * 1000 * time)).astype(np.int16))


def write_images(path):
    Image = pytest.importorskip("PIL.Image")
    path.mkdir()
    for number, row in enumerate(X):
        Image.fromarray(row.reshape(1, 3).astype(np.uint8)).save(path / f"{number}.png")
    (path / "notes.txt").write_text("not an image")


WRITERS = {
    "x.csv": write_csv,
    "x.csv.gz": write_csv_gz,
    "x.parquet": write_parquet,
    "x.feather": write_feather,
    "x.npz": write_npz,
    "sparse.npz": write_sparse_npz,
    "matrix.mtx": write_10x,
    "GSM1_matrix.mtx.gz": write_10x,
    "x.h5": write_hdf5,
    "x.h5ad": write_h5ad,
    "x.10x.h5": write_10x_h5,
    "x.zarr": write_zarr,
    "old.zarr": lambda path: write_zarr(path, zarr_format=2),
    "x.mat": write_mat,
    "sparse.mat": write_sparse_mat,
    "new.mat": write_mat73,
    "x.wav": write_wav,
    "images": write_images,
}
NAMED = {
    **dict.fromkeys(("x.csv", "x.parquet", "x.feather", "x.npz", "sparse.npz", "x.h5ad", "x.10x.h5"), (ROWS, COLUMNS)),
    "x.csv.gz": (None, ["a", "b", "c"]),
    "matrix.mtx": (["AC-1", "AG-1", "CC-1", "TT-1"], ["CD3D", "CD19 (E2)", "CD19 (E3)"]),
    "images": (["0.png", "1.png", "2.png", "3.png"], None),
}
SPARSE = {"sparse.npz", "matrix.mtx", "GSM1_matrix.mtx.gz", "x.h5ad", "x.10x.h5", "sparse.mat"}


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "x.wav"])
def test_what_is_read_from_each_format(name, tmp_path):
    WRITERS[name](tmp_path / name)
    with warnings.catch_warnings(action="error"):
        table = read(tmp_path / name, **({"key": "V"} if name == "new.mat" else {}))
    found = (
        table.X.T if name == "GSM1_matrix.mtx.gz" else table.X
    )  # its sidecar files have other names: nothing is turned
    assert sparse.issparse(found) == (name in SPARSE)
    assert np.array_equal(found.toarray() if sparse.issparse(found) else found, X)
    assert (table.row_names, table.column_names) == NAMED.get(name, (None, None))
    assert table.found
    assert table.image_shape == ((1, 3) if name == "images" else None)


def test_folders_and_prefixes_of_10x_genomics(tmp_path):
    write_10x(tmp_path / "matrix.mtx.gz")
    table = pw.read(tmp_path)
    assert table.X.shape == (4, 3)
    assert table.row_names[0] == "AC-1"
    assert "turned" in table.found
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress(b"AC-1\nAG-1\n"))
    with pytest.raises(ValueError, match=r"matrix.mtx.gz: it has 2 names for 4 rows"):
        pw.read(tmp_path)


def test_names_beside_a_matrix(tmp_path):
    mmwrite(tmp_path / "x.mtx", sparse.coo_array(X))
    (tmp_path / "x.mtx_rows").write_text("".join(f"{name}\n" for name in ROWS), encoding="utf-8")
    table = read(tmp_path / "x.mtx")
    assert (table.row_names, table.column_names) == (ROWS, None)


def test_layers_and_keys(tmp_path):
    write_h5ad(tmp_path / "x.h5ad")
    assert np.array_equal(read(tmp_path / "x.h5ad", layer="counts").X.toarray(), 2 * X)
    with pytest.raises(ValueError, match=r"x.h5ad: it has no layer 'raw', it has counts"):
        read(tmp_path / "x.h5ad", layer="raw")
    write_mat73(tmp_path / "x.mat")
    assert np.array_equal(read(tmp_path / "x.mat", key="S").X.toarray(), X)
    with pytest.raises(ValueError, match=r"several variables: name one with key, on the command line --key \(S, V\)"):
        read(tmp_path / "x.mat")
    write_csv(tmp_path / "x.csv")
    with pytest.raises(
        ValueError, match=r"x.csv: key is for .npz, .h5ad, .h5, .hdf5, .zarr, .mat files only, leave it out"
    ):
        read(tmp_path / "x.csv", key="a", layer="b")


def test_anndata_reads_and_writes_the_same(tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(sparse.csr_matrix(X), layers={"raw": X})
    adata.obs_names, adata.var_names = ROWS, COLUMNS
    adata.write_h5ad(tmp_path / "x.h5ad")
    adata.write_zarr(tmp_path / "x.zarr")
    for name in ("x.h5ad", "x.zarr"):
        table = read(tmp_path / name)
        assert np.array_equal(table.X.toarray(), X)
        assert (table.row_names, table.column_names) == (ROWS, COLUMNS)
        assert np.array_equal(read(tmp_path / name, layer="raw").X, X)


def test_sound_is_a_spectrogram(tmp_path):
    write_wav(tmp_path / "x.wav")
    table = read(tmp_path / "x.wav")
    assert table.X.min() >= 0
    loudest = int(table.X.sum(axis=0).argmax())
    assert table.column_names[loudest] == "1000 Hz"
    assert [mode.name for mode in table.modes] == ["time", "frequency"]
    assert table.X.shape == tuple(len(mode.labels) for mode in table.modes)
    assert table.X[5:-5, loudest] == pytest.approx(20000 / 32767 / 2, rel=1e-3)  # half of the amplitude


class Trap:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("trap"),))


def test_nothing_is_ever_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.array([[Trap()]]), allow_pickle=True)
    np.savez("x.npz", X=X, names=np.array([Trap()], dtype=object))
    files = ["x.npy", "x.npz"]
    if numbers.find_spec("zarr"):
        write_zarr(Path("x.zarr"), zarr_format=2)
        about = json.loads(Path("x.zarr/counts/.zarray").read_text())
        about["filters"], about["compressor"] = [{"id": "pickle", "protocol": 5}], None
        Path("x.zarr/counts/.zarray").write_text(json.dumps(about))
        for chunk in Path("x.zarr/counts").glob("[0-9]*"):
            chunk.write_bytes(pickle.dumps(Trap()))
        files.append("x.zarr")
    for name in files:
        with pytest.raises(ValueError, match=f"^{name}"):
            read(name)
    assert not Path("trap").exists()


def test_bombs_and_huge_shapes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "FREE", 1 << 16)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"0,0,0,0\n" * 1_000_000))
    np.savez_compressed(tmp_path / "x.npz", np.zeros((1000, 1000)))
    refused = ["x.csv.gz", "x.npz"]
    if numbers.find_spec("h5py"):
        with __import__("h5py").File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("X", (10**9, 10**6), "f4", chunks=(1000, 1000))
        refused.append("x.h5")
    for name in refused:
        with pytest.raises(ValueError, match=f"^{name}: it says it holds .* GiB, in a file of .* bytes"):
            read(tmp_path / name)


@pytest.mark.parametrize("outcome", [SimpleNamespace(returncode=-11, stdout=b""), TimeoutExpired("probe", 60)])
def test_files_that_crash_a_library_or_hold_it_up_get_a_sentence(outcome, tmp_path, monkeypatch):
    def run(*_, **__):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    write_mat(tmp_path / "x.mat")
    monkeypatch.setattr(base, "run", run)
    with pytest.raises(ValueError, match=r"x.mat: it is damaged: the library that reads it (crashes|had not finished)"):
        read(tmp_path / "x.mat")


def test_images_must_be_alike(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    write_images(tmp_path / "faces")
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "faces" / "9.png")
    with pytest.raises(ValueError, match=r"faces: 9.png is 2 x 2 pixels, and 0.png is 3 x 1 pixels: all must be alike"):
        read(tmp_path / "faces")
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="none: the folder holds no images"):
        read(tmp_path / "none")


def test_what_a_format_needs_is_said(tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(sys.modules["partwise.io.read"], "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'x.parquet: this format needs pyarrow: pip install "partwise\[files\]"'):
        read(tmp_path / "x.parquet")
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"x.xlsx: cannot read .xlsx; partwise reads .csv"):
        read(tmp_path / "x.xlsx")


IDENTIFIERS = {
    "row numbers": ("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(1, 7)), "first column is whole numbers", "index"),
    "ids": ("id,b\n17,1\n4,2\n", "first column is whole numbers", "index"),
    "wavelengths": ("400,410,420,430,440\n1,0,2,1,3\n", "first row is numbers in even steps", "header"),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_numbers_that_look_like_names_are_warned_of(name, tmp_path):
    text, sentence, option = IDENTIFIERS[name]
    (tmp_path / "x.csv").write_text(text)
    with pytest.warns(UserWarning, match=f"x.csv: its {sentence}"):
        data = read(tmp_path / "x.csv").X
    with warnings.catch_warnings(action="error"):
        assert np.array_equal(read(tmp_path / "x.csv", **{option: False}).X, data)
        table = read(tmp_path / "x.csv", **{option: True})
    assert data.size > table.X.size
    assert (table.row_names if option == "index" else table.column_names) is not None


AXES = {
    "uneven wavelengths": ("401.0,404.1,407.3,410.4,413.6,416.8,420.0,423.1", True),
    "falling wavenumbers": ("4000,3990,3970,3940,3900,3850,3790,3720", True),
    "few": ("401.0,404.1,407.3,410.4", False),
    "not in order": ("401.0,404.1,407.3,410.4,413.6,416.8,420.0,1", False),
}


@pytest.mark.parametrize("name", AXES)
def test_a_first_row_that_rises_or_falls_names_the_columns(name, tmp_path):
    """Where no other row does; what is done is said."""
    first, taken = AXES[name]
    width = first.count(",") + 1
    rows = np.random.default_rng(0).integers(0, 9, (5, width))
    text = first + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "x.csv").write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read(tmp_path / "x.csv")
    assert (table.column_names == first.split(",")) == taken
    assert any("is taken for names of columns" in str(warning.message) for warning in caught) == taken
    (tmp_path / "y.csv").write_text(first + "\n" + first + "\n")  # rows of spectra that all rise are data
    assert read(tmp_path / "y.csv").X.shape == (2, width)


def test_separator_and_decimal_can_be_given(tmp_path):
    (tmp_path / "x.csv").write_text("1,5|2\n3|4\n")
    assert read(tmp_path / "x.csv", separator="|", decimal=",").X.tolist() == [[1.5, 2], [3, 4]]
    for wrong in ({"separator": "ab"}, {"separator": '"'}, {"decimal": ";"}, {"decimal": ",", "separator": ","}):
        with pytest.raises(ValueError, match=r"separator|decimal"):
            read(tmp_path / "x.csv", **wrong)


def test_the_command_line_reads_with_options_and_shows_images(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("7|8|9\n1,5|2|1\n3|4|2\n0|1|5\n")
    said = ["--separator", "|", "--decimal", ",", "--header", "--no-index", "--no-certify"]
    assert main(["fit", str(tmp_path / "x.csv"), "--rank", "1", "--out", str(tmp_path / "out"), *said]) == 0
    assert (tmp_path / "out" / "H.csv").read_text().splitlines()[0].endswith("7,8,9")
    told = "read 3 samples x 3 features, features named (text separated by '|', decimal commas, a row of names)"
    assert told in capsys.readouterr().out
    write_images(tmp_path / "faces")
    assert (
        main(["fit", str(tmp_path / "faces"), "--rank", "1", "--out", str(tmp_path / "faces_out"), "--no-certify"]) == 0
    )
    assert "4 images of 3 x 1 pixels, in grey" in capsys.readouterr().out


BLOCKS = {
    "numbers": "1.5,2,3\n4,5e-3,6\n",
    "missing": "1,,NA\n-,2,NaN\nn/a,.,3\n",
    "names": 'x,1,2\n"y",3,4\n"a ""b""",5,6\n"p,q",7,8\n',
    "blanks": "1, 2,3\n 4,5 ,+6\n",
    "quotes": '"1","2"\n3,4\n',
    "blank lines": "1,2\n\n3,4\n\n",
}


@pytest.mark.parametrize("parser", ["from_arrow", "from_numpy"])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_at_once_and_cell_by_cell_agree(name, parser, tmp_path, monkeypatch):
    if parser == "from_arrow":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(numbers, "find_spec", lambda name: parser == "from_arrow")
    monkeypatch.setattr(base.line_blocks, "__defaults__", (16,))  # several blocks
    (tmp_path / "x.csv").write_text(BLOCKS[name] * 5)
    tables = [read(tmp_path / "x.csv")]
    monkeypatch.setattr("partwise.io.readers.text.at_once", lambda *_: None)
    tables.append(read(tmp_path / "x.csv"))
    assert np.array_equal(tables[0].X, tables[1].X, equal_nan=True)
    assert tables[0].row_names == tables[1].row_names


def test_tables_of_zeros_are_kept_sparse(tmp_path):
    rng = np.random.default_rng(0)
    Z = sparse.random_array((400, 300), density=0.03, rng=rng)
    np.savetxt(tmp_path / "x.csv", Z.toarray(), fmt="%.17g", delimiter=",")
    table = read(tmp_path / "x.csv")
    assert sparse.issparse(table.X)
    assert "kept sparse" in table.found
    assert np.array_equal(table.X.toarray(), Z.toarray())


@pytest.mark.slow
def test_a_million_columns(tmp_path):
    (tmp_path / "x.csv").write_text(",".join(["1"] * 1_000_000) + "\n" + ",".join(["2"] * 1_000_000))
    assert read(tmp_path / "x.csv").X.shape == (2, 1_000_000)
    entries = "".join(f"{1 + j % 3} {1 + j} 2\n" for j in range(0, 1_000_000, 1000))
    (tmp_path / "x.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n3 1000000 1000\n{entries}")
    X = read(tmp_path / "x.mtx").X
    assert X.shape == (3, 1_000_000)
    sparse.save_npz(tmp_path / "x.npz", X)
    assert read(tmp_path / "x.npz").X.nnz == 1000


@pytest.mark.slow
def test_the_command_line_takes_a_million_columns(tmp_path, capsys):
    X = sparse.random_array((20, 1_000_000), density=0.001, format="csr", rng=np.random.default_rng(0))
    sparse.save_npz(tmp_path / "x.npz", X)
    assert main(["info", str(tmp_path / "x.npz")]) == 0
    assert "entries: 20,000,000, listed by nonzeros" in capsys.readouterr().out
    out = tmp_path / "out"
    assert main(["fit", str(tmp_path / "x.npz"), "--rank", "2", "--max-iter", "3", "--quiet", "--out", str(out)]) == 0
    assert sum(file.stat().st_size for file in out.iterdir()) < 4 * 8 * 2 * 1_000_000


def test_many_columns_of_parquet_are_read_in_linear_time(tmp_path):
    """Where their names were asked for once a column, 30000 took minutes."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = [f"g{j}" for j in range(5_000)]
    parquet.write_table(pa.table([pa.array([1.0])] * len(names), names=names), tmp_path / "x.parquet")
    began = time.perf_counter()
    assert read(tmp_path / "x.parquet").column_names == names
    assert time.perf_counter() - began < 20


def files_of(path):
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """The bytes of small valid files, by format and place; those whose library is absent left out."""
    folder, contents = tmp_path_factory.mktemp("valid"), {}
    for name, write in WRITERS.items():
        try:
            write(folder / name)
        except pytest.skip.Exception:
            continue
        contents[name] = {file.relative_to(folder): file.read_bytes() for file in files_of(folder / name)}
    return contents


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_gives_a_table_or_a_sentence(data, valid, tmp_path_factory):
    """Byte flips, insertions, gaps and truncations in files of every format."""
    damaged(data, valid, tmp_path_factory)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_much_damage_gives_a_table_or_a_sentence(data, valid, tmp_path_factory):
    damaged(data, valid, tmp_path_factory)


def damaged(data, valid, tmp_path_factory):
    name = data.draw(st.sampled_from(sorted(valid)))
    folder, hit = tmp_path_factory.mktemp("damaged"), data.draw(st.sampled_from(sorted(valid[name])))
    for place, content in valid[name].items():
        spoiled = bytearray(content)
        if place == hit:
            for _ in range(data.draw(st.integers(0, 3))):
                spoiled[data.draw(st.integers(0, len(spoiled) - 1))] = data.draw(st.integers(0, 255))
            if data.draw(st.booleans()):  # something put in, or a stretch left out
                start = data.draw(st.integers(0, len(spoiled)))
                spoiled[start : start + data.draw(st.integers(0, 50))] = data.draw(st.binary(max_size=20))
            spoiled = spoiled[: data.draw(st.one_of(st.just(len(spoiled)), st.integers(0, len(spoiled))))]
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(bytes(spoiled))
    try:
        with warnings.catch_warnings(action="ignore"):
            table = read(folder / name)
    except ValueError as error:
        assert name in str(error)
        assert "\n" not in str(error)
    else:
        assert table.X.ndim >= 2
        assert table.row_names is None or len(table.row_names) == table.X.shape[0]


def test_every_ending_has_a_reader_that_is_documented():
    page = (Path(__file__).parent.parent / "docs" / "files.md").read_text(encoding="utf-8")
    for suffix in READERS:
        assert suffix in page, suffix
