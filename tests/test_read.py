"""Files as people have them, odd, damaged and hostile ones: a matrix, or a sentence that names the file."""

import io
import re
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmread, mmwrite

import partwise as pw
from partwise.io import read

X = np.arange(12.0).reshape(4, 3)
HUGE = 10**15


def npy(array, shape=None, kind=None):
    """The bytes of an .npy file, with another shape or type in its description."""
    header = {"descr": kind or array.dtype.str, "fortran_order": False, "shape": shape or array.shape}
    text = (repr(header) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()


def archive(compression=zipfile.ZIP_STORED, **entries):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", compression) as file:
        for name, content in entries.items():
            file.writestr(f"{name}.npy", content if isinstance(content, bytes) else npy(np.asarray(content)))
    return memory.getvalue()


def sparse_npz(**changes):
    """The bytes of a SciPy sparse matrix with some of its arrays replaced."""
    memory = io.BytesIO()
    sparse.save_npz(memory, sparse.csr_array(X), compressed=False)
    memory.seek(0)
    with np.load(memory) as arrays:
        return archive(**{**arrays, **changes})


def marked(content, place, value):
    """A ZIP archive with another byte in the description of its first entry, in both places where that stands."""
    content = bytearray(content)
    content[place] = content[content.index(b"PK\x01\x02") + place + 2] = value
    return bytes(content)


def mtx(matrix, **options):
    memory = io.BytesIO()
    mmwrite(memory, matrix, **options)
    return memory.getvalue()


COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
GOOD = {
    "x.npy": npy(X),
    "integers.npy": npy(np.arange(12).reshape(4, 3)),
    "truth.npy": npy(X > 3),
    "X.NPY": npy(X),
    "one.npz": archive(faces=X),
    "packed.npz": archive(zipfile.ZIP_DEFLATED, faces=X),
    "zeros.npz": archive(zipfile.ZIP_DEFLATED, faces=np.zeros((2000, 500))),
    "sparse.npz": sparse_npz(),
    "sparse.mtx": mtx(sparse.coo_array(X)),
    "dense.mtx": mtx(X),
    "pattern.mtx": b"%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n",
    "zeros.mtx": (COORDINATE + "% one\n\n% two\n3 3 0\n").encode(),
    "symmetric.mtx": b"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n",
    "large_and_sparse.mtx": (COORDINATE + "2000 1000000 2\n1 1 1\n2000 1000000 1\n").encode(),
}
CUBE = np.arange(12.0).reshape(2, 2, 3)
TNS = "# made by hand\n\n" + "".join(f"{i + 1} {j + 1} {k + 1}\t{CUBE[i, j, k]}\n" for i, j, k in np.argwhere(CUBE))


def listed_npz(**changes):
    """The bytes of a tensor by its nonzeros, with some of the arrays replaced, or left out where they are None."""
    arrays = {"coords": np.argwhere(CUBE).astype(np.uint8), "counts": CUBE[CUBE > 0].astype(np.uint8)}
    arrays |= {"shape": np.array(CUBE.shape), "names": np.array(["a", "b"])} | changes
    return archive(**{name: array for name, array in arrays.items() if array is not None})


TENSORS = {
    "cube.npy": npy(CUBE),
    "cube.npz": archive(a=CUBE),
    "cube.tns": TNS.encode(),
    "bom.tns": b"\xef\xbb\xbf" + TNS.encode(),
    "listed.npz": listed_npz(),
    "values.npz": listed_npz(values=CUBE[CUBE > 0], counts=None),
    "turned.npz": listed_npz(coords=np.argwhere(CUBE).T, data=CUBE[CUBE > 0], counts=None, fill_value=np.array(0.0)),
}
ODD = {
    # .npy
    "empty.npy": b"",
    "nonsense.npy": b"nonsense",
    "magic alone.npy": b"\x93NUMPY",
    "huge.npy": npy(X, (HUGE, 3)),
    "huge product.npy": npy(X, (HUGE, HUGE)),
    "beyond integers.npy": npy(X, (10**40, 3)),
    "negative.npy": npy(X, (-4, 3)),
    "truth as shape.npy": npy(X, (True, 3)),
    "shape of text.npy": npy(X, ("4", 3)),
    "cut.npy": npy(X)[:-8],
    "text.npy": npy(np.array([["a", "b"]])),
    "bytes.npy": npy(np.array([[b"a", b"b"]])),
    "objects.npy": npy(np.array([[{}, 1]], dtype=object)),
    "dates.npy": npy(np.zeros((2, 2), "M8[D]")),
    "complex.npy": npy(X + 1j),
    "records.npy": npy(np.zeros(3, [("a", "f8")]), kind=[("a", "<f8")]),
    "vector.npy": npy(X[0]),
    "number.npy": npy(np.array(3.0)),
    "no rows.npy": npy(X[:0]),
    "no type.npy": npy(X, kind="|V0"),
    "unknown type.npy": npy(X, kind="<q17"),
    "endless header.npy": npy(X, "(" * 5000),
    # .npz
    "empty.npz": b"",
    "nonsense.npz": b"PK nonsense",
    "no entries.npz": archive(),
    "no array.npz": archive(a=b"hello"),
    "huge.npz": archive(a=npy(X, (HUGE, 3))),
    "huge and packed.npz": archive(zipfile.ZIP_DEFLATED, a=npy(X, (HUGE, 3))),
    "a little too large.npz": archive(a=npy(X, (5, 3))),
    "text.npz": archive(a=np.array([["a", "b"]])),
    "objects.npz": archive(a=np.array([[{}, 1]], dtype=object)),
    "vector.npz": archive(a=X[0]),
    "encrypted.npz": marked(archive(a=X), 6, 1),
    "other compression.npz": marked(archive(a=X), 8, 99),
    "flipped.npz": archive(a=X).replace(b"\x00\x00\x08@", b"\x00\x00\x09@", 1),
    "cut.npz": archive(a=X)[:-30],
    "two.npz": archive(a=X, b=X),
    # SciPy's sparse matrices
    "index.npz": sparse_npz(indices=np.full(11, 99, np.int32)),
    "negative index.npz": sparse_npz(indices=np.full(11, -1, np.int32)),
    "indptr.npz": sparse_npz(indptr=np.array([0, 90, 3, 8, 11], np.int32)),
    "shape.npz": sparse_npz(shape=np.array([HUGE, 3])),
    "wide.npz": sparse_npz(shape=np.array([4, HUGE])),
    "shape of one.npz": sparse_npz(shape=np.array([4])),
    "negative shape.npz": sparse_npz(shape=np.array([4, -3])),
    "shape of text.npz": sparse_npz(shape=np.array(["4", "3"])),
    "format.npz": sparse_npz(format=np.array("exe")),
    "format of numbers.npz": sparse_npz(format=np.array(3)),
    "few values.npz": sparse_npz(data=np.ones(3)),
    "complex values.npz": sparse_npz(data=np.ones(11, complex)),
    "text as values.npz": sparse_npz(data=np.array(["a"] * 11)),
    "coo.npz": archive(
        format=np.array("coo"),
        shape=np.array([4, 3]),
        row=np.array([0, 9**9]),
        col=np.array([0, 1]),
        data=np.ones(2),
        _is_array=np.array(True),
    ),
    "dia.npz": archive(
        format=np.array("dia"), shape=np.array([HUGE, 3]), offsets=np.array([9**9]), data=np.ones((1, 2))
    ),
    # .mtx
    "empty.mtx": b"",
    "nonsense.mtx": b"1 2 3",
    "banner alone.mtx": COORDINATE.encode(),
    "rows.mtx": (COORDINATE + f"{HUGE} 3 1\n1 1 1.0\n").encode(),
    "columns.mtx": (COORDINATE + f"3 {HUGE} 1\n1 1 1.0\n").encode(),
    "entries.mtx": (COORDINATE + f"3 3 {HUGE}\n1 1 1.0\n").encode(),
    "beyond integers.mtx": (COORDINATE + f"{10**40} 3 1\n1 1 1.0\n").encode(),
    "negative.mtx": (COORDINATE + "-3 3 1\n1 1 1.0\n").encode(),
    "index.mtx": (COORDINATE + "3 3 1\n9 1 1.0\n").encode(),
    "index 0.mtx": (COORDINATE + "3 3 1\n0 1 1.0\n").encode(),
    "cut.mtx": (COORDINATE + "3 3 2\n1 1 1.0\n").encode(),
    "more.mtx": (COORDINATE + "3 3 1\n1 1 1.0\n2 2 2.0\n3 3 3.0\n").encode(),
    "words.mtx": (COORDINATE + "3 3 1\n1 1 one\n").encode(),
    "array.mtx": f"%%MatrixMarket matrix array real general\n{HUGE} {HUGE}\n1\n".encode(),
    "large array.mtx": b"%%MatrixMarket matrix array real general\n100000 100000\n1\n",
    "complex.mtx": mtx(X + 1j),
    "field.mtx": b"%%MatrixMarket matrix coordinate quaternion general\n1 1 1\n1 1 1\n",
    "layout.mtx": b"%%MatrixMarket matrix cubic real general\n1 1 1\n1 1 1\n",
    "bytes.mtx": bytes(range(256)),
    "no rows.mtx": b"%%MatrixMarket matrix array real general\n0 3\n1\n",
    "not square.mtx": b"%%MatrixMarket matrix array real symmetric\n2 3\n1\n2\n3\n",
    "half an index.mtx": (COORDINATE + "3 3 1\n1.5 1 1.0\n").encode(),
    "cut in a number.mtx": (COORDINATE + "4 3 3\n1 2 1\n1 3 2\xf2").encode("latin-1"),
    "zero bytes.mtx": (COORDINATE + "4 3 3\n1 2 1\n1 3 2\x002 1 3\n").encode(),
    # .tns
    "empty.tns": b"",
    "comments.tns": b"# nothing\n",
    "ragged.tns": b"1 1 1 2\n1 1 2\n",
    "words.tns": b"1 1 one 2\n",
    "index 0.tns": b"1 1 1 2\n0 1 1 2\n",
    "negative.tns": b"1 -1 1 2\n",
    "half an index.tns": b"1 1.5 1 2\n",
    "no index.tns": b"1 nan 1 2\n",
    "endless index.tns": b"1 inf 1 2\n",
    "huge.tns": f"1 {HUGE} 1 2\n".encode(),
    "beyond integers.tns": b"1 1e30 1 2\n",
    "vector.tns": b"1 2\n2 3\n",
    "bytes.tns": bytes(range(256)),
    "zero bytes.tns": b"1 1 1 2\x00\n",
    # tensors by their nonzeros
    "outside.npz": listed_npz(shape=np.array([2, 2, 2])),
    "negative coords.npz": listed_npz(coords=-np.argwhere(CUBE)),
    "coords with fractions.npz": listed_npz(coords=np.argwhere(CUBE) + 0.5),
    "few coords.npz": listed_npz(coords=np.argwhere(CUBE)[:5]),
    "coords of two modes.npz": listed_npz(coords=np.argwhere(CUBE)[:, :2]),
    "one coord.npz": listed_npz(coords=np.array(3)),
    "huge shape.npz": listed_npz(shape=np.array([2, 2, HUGE])),
    "negative shape of three.npz": listed_npz(shape=np.array([2, 2, -3])),
    "no shape.npz": listed_npz(shape=np.array(12)),
    "no values.npz": listed_npz(counts=None),
    "complex counts.npz": listed_npz(counts=np.ones(11, complex)),
    "text for counts.npz": listed_npz(counts=np.array(["a"] * 11)),
    "ones elsewhere.npz": listed_npz(fill_value=np.array(1.0)),
    "shape left out.npz": listed_npz(shape=None),
    # text
    "empty.csv": b"",
    "blank.csv": b"\n \n",
    "names.csv": b"a,b\n",
    "comments.csv": b"# a\n# b\n",
    "bytes.csv": bytes(range(256)),
    "utf-16.csv": "1,2\n3,4\n".encode("utf-16"),
    "zero bytes.csv": b"1,\x002\n3,4\n",
    "long cell.csv": b"1," + b"9" * 200_000 + b"x\n3,4\n",
    "open quote.csv": b'1,"2\n3,4\n',
    "ragged.csv": b"1,2\n3\n",
    "word.csv": b"1,2\n3,x\n",
    "four names over two columns.csv": b"a,b,c,d\n1,2\n3,4\n",
    "three names over two columns.csv": b"a,b,c\n1,2\n3,4\n",
    "one name over three columns.csv": b"a\n1,2,3\n4,5,6\n",
    "word in the first column.csv": b"a,b\n1,2\nx,4\n5,6\n",
    "holes for a column.csv": b"a,b\n,2\n,4\n",
    "trailing commas.csv": b"1,2,\n3,4,\n",
    "spaces.csv": b"1 2\n3 4\n",
    "tabs and words.tsv": b"a\tb\n1\tx\n",
}


SENTENCES = {
    "ragged.tns": "line 2 has 3 numbers, where the first has 4: a .tns file has a line for each .* and no header$",
    "words.tns": "'one' in line 1 is not a number: a .tns file has a line for each entry",
    "index 0.tns": "the indices of entry 2 are not whole numbers >= 1: .tns counts from 1, so add 1 to all indices$",
    "negative.tns": "the indices of entry 1 are not whole numbers >= 1$",
    "trailing commas.csv": "no number in column 3: delete it, or the separators at the ends of lines$",
    "holes for a column.csv": "no number in column 1: delete it",
    "shape left out.npz": "holds a tensor by its coords and has no shape: add the size of each mode, as shape$",
    "outside.npz": r"its coords go from \[0, 0, 0\] to \[.*\], and are counted from 0 within its shape 2 x 2 x 2$",
}


@pytest.mark.parametrize("name, sentence", SENTENCES.items())
def test_what_is_wrong_with_a_file_and_what_to_do(name, sentence, tmp_path):
    (tmp_path / name).write_bytes(ODD[name])
    with pytest.raises(ValueError, match=sentence):
        read_quietly(tmp_path / name)


def read_quietly(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read(path, **options)


@pytest.mark.parametrize("name", GOOD)
def test_good_files(name, tmp_path):
    (tmp_path / name).write_bytes(GOOD[name])
    table = read_quietly(tmp_path / name)
    assert table.X.ndim == 2
    if table.X.shape == X.shape and table.X.dtype.kind != "b":
        assert np.array_equal(table.X.toarray() if sparse.issparse(table.X) else table.X, X)


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name, tmp_path):
    (tmp_path / name).write_bytes(TENSORS[name])
    found = read_quietly(tmp_path / name).X
    assert np.array_equal(found if isinstance(found, np.ndarray) else found.toarray(), CUBE)


def test_listed_matrices_are_sparse_matrices(tmp_path):
    (tmp_path / "x.tns").write_text("1 2 3.5\n4 3 1\n1 2 1\n")
    found = read_quietly(tmp_path / "x.tns").X
    assert sparse.issparse(found)
    assert found.toarray()[0, 1] == 4.5
    assert found.shape == (4, 3)


@pytest.mark.parametrize("name", ODD)
def test_odd_files_get_a_sentence_that_names_them(name, tmp_path):
    (tmp_path / name).write_bytes(ODD[name])
    with pytest.raises(ValueError, match=f"^{re.escape(name)}") as caught:
        read_quietly(tmp_path / name)
    assert len(str(caught.value)) < 600


CSV = {
    "decimal commas": ("1,5;2\n-3,5;4\n", [[1.5, 2], [-3.5, 4]], None),
    "decimal commas under names": ("a;b\n1;2\n3;4,5e1\n", [[1, 2], [3, 45]], ["a", "b"]),
    "a comment": ("# made by hand\n1,2\n3,4\n", [[1, 2], [3, 4]], None),
    "comments and names": ("# one\n\n# two, three, four\na,b\n1,2\n", [[1, 2]], ["a", "b"]),
    "row names": ("id,a,b\ns1,1,2\ns2,3,4\n", [[1, 2], [3, 4]], ["a", "b"]),
    "row names without a heading, as R writes them": ("a,b\ns1,1,2\ns2,3,4\n", [[1, 2], [3, 4]], ["a", "b"]),
    "the same with numbers": ("a,b\n1,1,2\n2,3,4\n", [[1, 2], [3, 4]], ["a", "b"]),
    "a missing row name": ("id,a\ns1,1\n,2\n", [[1], [2]], ["a"]),
    "numbers as row names under an empty heading": (",a\n7,1\n8b,2\n", [[1], [2]], ["a"]),
    "integers as column names, as pandas writes them": (",0,1\n0,2,3\n", [[2, 3]], ["0", "1"]),
    "names that Python takes for numbers": ("1_1,1_2\n3,4\n", [[3, 4]], ["1_1", "1_2"]),
    "a line break in a name": ('"a\nb",c\n1,2\n', [[1, 2]], ["a\nb", "c"]),
    "old line ends": ("1,2\r3,4\r", [[1, 2], [3, 4]], None),
    "a separator that is none": ("a\u2028b,c\n1,2\n", [[1, 2]], ["a\u2028b", "c"]),
    "a # in the table": ("#1,5\nid,a\n#2,6\n", [[6]], ["a"]),
    "hole in the first column": ("a,b\n1,2\n,4\n5,6\n", [[1, 2], [None, 4], [5, 6]], ["a", "b"]),
    "NA in the first column": ("a,b\n1,2\nNA,4\n", [[1, 2], [None, 4]], ["a", "b"]),
    "hole in the first row": ("1,,3\n4,5,6\n", [[1, None, 3], [4, 5, 6]], None),
    "NA in the first row": ("1,NA,3\n4,5,6\n", [[1, None, 3], [4, 5, 6]], None),
    "other words for nothing": ("id;a;b\ns;n/a;1\nt;2;NaN\nu;?;.\n", [[None, 1], [2, None], [None, None]], ["a", "b"]),
}


@pytest.mark.parametrize("name", CSV)
def test_text_as_people_have_it(name, tmp_path):
    text, expected, names = CSV[name]
    (tmp_path / "x.csv").write_bytes(text.encode())
    table = read_quietly(tmp_path / "x.csv")
    assert np.where(np.isnan(table.X), None, table.X).tolist() == expected  # None: missing
    assert table.column_names == names


def test_tabs_separate_where_the_ending_says_so(tmp_path):
    (tmp_path / "x.tsv").write_text("a, b, c\td\n1\t2\n")
    assert read_quietly(tmp_path / "x.tsv").column_names == ["a, b, c", "d"]


def test_errors_in_text_name_the_line(tmp_path):
    (tmp_path / "x.csv").write_text("# one\n\na,b\n1,2\n\n3,x\n")
    with pytest.raises(ValueError, match=r"line 6: 'x' in column 'b' is not a number; leave out columns of text$"):
        read_quietly(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("a,b\n1,2\nx,4\n")
    with pytest.raises(
        ValueError, match="line 3: 'x' in column 'a' is not a number; if the first column holds names, pass index=True"
    ):
        read_quietly(tmp_path / "x.csv")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("store", [np.asarray, sparse.coo_array])
def test_all_kinds_of_mtx(store, field, symmetry, tmp_path):
    if field == "pattern" and (store is np.asarray or symmetry == "skew-symmetric"):
        pytest.skip("there is no such thing")
    square = np.arange(16.0).reshape(4, 4) % 5
    matrix = {"general": X, "symmetric": square + square.T, "skew-symmetric": square - square.T}[symmetry]
    path = tmp_path / "x.mtx"
    path.write_bytes(mtx(store(matrix), field=field, symmetry=symmetry, comment="made here"))
    found, expected = read_quietly(path).X, mmread(path)
    assert np.array_equal(*(A.toarray() if sparse.issparse(A) else A for A in (found, expected)))


def test_keys(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(archive(a=X, b=2 * X))
    assert np.array_equal(read_quietly(path, key="b").X, 2 * X)
    with pytest.raises(ValueError, match=r"x\.npz: it has no array 'c', it has a, b"):
        read_quietly(path, key="c")


@pytest.mark.parametrize(
    "name", ["x.npy", "packed.npz", "sparse.npz", "sparse.mtx", "dense.mtx", "cube.tns", "listed.npz"]
)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_bytes_changed_give_a_matrix_or_a_sentence(name, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / name
    content = bytearray((GOOD | TENSORS)[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(1, len(content)))]))
    try:
        assert read_quietly(path).X.ndim >= 2
    except ValueError as error:
        assert name in str(error)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet='1.2,;\t\n"#ax_ NA\x00\r-', max_size=30))
def test_any_text_gives_a_matrix_or_a_sentence(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "x.csv"
    path.write_text(text)
    try:
        table = read_quietly(path)
    except ValueError as error:
        assert "x.csv" in str(error)
    else:
        assert table.X.ndim == 2
        assert table.column_names is None or len(table.column_names) == table.X.shape[1]


MIXED = ["1,5;2.5;3\n4;5;6\n", "a;b\n1.5;2\n3;4,5\n"]


@pytest.mark.parametrize("text", MIXED)
def test_decimal_points_and_commas_in_one_file_are_refused(text, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=r"x.csv: line \d: '\d[.,]\d' has a decimal .*say which it is with decimal"):
        read(tmp_path / "x.csv")


def test_a_table_is_taken_with_its_names(tmp_path):
    """Where columns of new data come in another order they are matched by name."""
    counts, names = np.random.default_rng(0).poisson(5, size=(30, 4)), ["red", "green", "blue", "black"]
    tables = []
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        path = tmp_path / f"{order[0]}.csv"
        lines = [["doc", *(names[i] for i in order)], *([f"d{n}", *row[order]] for n, row in enumerate(counts))]
        path.write_text("\n".join(",".join(map(str, line)) for line in lines))
        tables.append(pw.read(path))
    result = pw.factorize(tables[0], 2, loss="kl", random_state=0)
    assert [mode.labels for mode in result.modes] == [tuple(f"d{n}" for n in range(30)), tuple(names)]
    first, other = map(result.transform, tables)
    assert np.array_equal(first, other)
    model = pw.NMF(2, random_state=0).fit(tables[0])
    assert np.array_equal(model.transform(tables[0]), model.transform(tables[0].X))
