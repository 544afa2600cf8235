"""What may be given as X, at every door: `factorize`, `certify` and the estimators."""

import re
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import partwise as pw
from partwise import structures as s
from partwise.data import as_data
from partwise.data.observed import observed
from partwise.data.validation import check_indices, checked_data
from partwise.datasets import make_cp, make_parts

from .conformance.tables import shuffled_csr
from .covering import EACH, PAIRS

X = make_parts(8, 6, 2, random_state=0).X
RESULT = pw.factorize(X, 2, random_state=0)
FITTED = pw.NMF(2, random_state=0, max_iter=1000).fit(X)

DOORS = {
    "factorize": lambda X: pw.factorize(X, 2, random_state=0),
    "certify": RESULT.certify,
    "NMF": lambda X: pw.NMF(2, random_state=0, max_iter=1000).fit(X),
    "NMF.transform": FITTED.transform,
    "Dictionary": lambda X: pw.Dictionary(2, nonzeros=1, random_state=0, max_iter=5, tol=1).fit(X),
    "function": lambda X: pw.non_negative_factorization(X, n_components=2, max_iter=1000),
}
DOORS_AND_NAMES = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


class Slow:
    """NumPy would ask for all of its items, one after the other, and for theirs."""

    shape = X.shape

    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(1)
        return Slow()


class Annotated(Slow):
    """As AnnData: a matrix with names, which is no sequence of rows, though it looks like one."""

    def __init__(self, X, isbacked=False):
        self.X, self.isbacked = X, isbacked
        self.obs_names = pd.Index([f"cell {i}" for i in range(8)])
        self.var = pd.DataFrame(index=[f"gene {j}" for j in range(6)])
        self.var_names = self.var.index


class OnDevice:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("copy the tensor to host memory first")


class Tensor(Slow):
    def __array__(self, dtype=None, copy=None):
        return X


def with_text():
    cells = X.astype(object)
    cells[1, 1] = "3"
    return cells


NO_MATRIX = {
    "dict": ({"a": [1.0, 2.0]}, "object of type dict"),
    "set": ({1, 2}, "object of type set"),
    "generator": ((row for row in X), "object of type generator"),
    "text": ("x.csv", "read it first"),
    "path": (Path("x.csv"), "read it first"),
    "number": (3.0, "object of type float"),
    "nothing": (None, "object of type NoneType"),
    "a class": (np.ndarray, "object of type type"),
    "operator": (aslinearoperator(X), "object of type MatrixLinearOperator"),
    "lazy frame": (polars.DataFrame(X).lazy(), "object of type LazyFrame"),
    "slow": (Slow(), "object of type Slow"),
    "list of slow": ([Slow()] * 3, "object of type list"),
    "list of lists of slow": ([[1.0, Slow()]] * 3, "object of type list"),
    "list of sparse": ([sparse.csr_array(X)] * 2, "object of type list"),
    "list in itself": ((nest := [1.0], nest.append(nest))[0], "object of type list"),
    "ragged": ([[1.0, 2.0], [3.0]], "gives no array"),
    "on a device": (OnDevice(), "copy the tensor to host memory first"),
    "text in objects": (with_text(), "array of text"),
    "text in lists": ([["1", "2"], ["3", "4"]], "array of"),
    "dict in objects": (np.array([[{}, 1], [2, 3]], dtype=object), "not 'dict'"),
    "number beyond double": (np.full((8, 6), 10**400, dtype=object), "too large to convert"),
    "records": (np.zeros(3, dtype=[("a", "f8"), ("b", "f8")]), "array of"),
    "sparse with 1 dimension": (sparse.coo_array(np.ones(4)), "1 dimensions"),
    "annotated, backed": (Annotated(X, isbacked=True), r"pass X\.to_memory\(\)"),
    "annotated, empty": (Annotated(None), "without a matrix"),
}


@EACH
@DOORS_AND_NAMES
@pytest.mark.parametrize("name", NO_MATRIX)
def test_what_is_no_matrix_gets_a_sentence_at_once(name, door):
    given, sentence = NO_MATRIX[name]
    begin = time.perf_counter()
    with pytest.raises((ValueError, TypeError)) as caught:
        door(given)
    assert time.perf_counter() - begin < 5  # it took minutes; the first look at a frame may load its library
    assert re.search(f"{sentence}|must be an array-like", str(caught.value))


MATRICES = {
    "lists": X.tolist(),
    "list of arrays": list(X),
    "objects": X.astype(object),
    "np.matrix": np.asmatrix(X),
    "mask without masked entries": np.ma.array(X),
    "memoryview": memoryview(X),
    "tensor": Tensor(),
    "pandas": pd.DataFrame(X),
    "polars": polars.DataFrame(X),
    "long double": X.astype(np.longdouble),
    "other byte order": X.astype(">f8"),
    "annotated": Annotated(X),
    "annotated, sparse": Annotated(sparse.csc_matrix(X)),
    "sparse long double": sparse.csr_array(X.astype(np.longdouble)),
    "coo": sparse.coo_matrix(X),
    "lil": sparse.lil_matrix(X),
    "dok": sparse.dok_array(X),
    "bsr": sparse.bsr_array(X, blocksize=(2, 3)),
    "dia": sparse.dia_array(X),
}


@pytest.mark.parametrize("name", MATRICES)
def test_what_holds_the_same_numbers_gives_the_same_parts(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result, model = DOORS["factorize"](MATRICES[name]), DOORS["NMF"](MATRICES[name])
        assert RESULT.certify(MATRICES[name]).bound == pytest.approx(RESULT.certify(X).bound)
    assert np.allclose(result.W, RESULT.W)
    assert np.allclose(model.components_, FITTED.components_)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.uint64, np.float16])
def test_other_numbers(kind):
    Y = np.minimum(20 * X, 1 if kind is bool else 200).astype(kind)
    for store in (np.asarray, sparse.csr_array) if kind != np.float16 else (np.asarray,):
        assert np.array_equal(DOORS["factorize"](store(Y)).W, DOORS["factorize"](store(Y.astype(float))).W)


def test_integers_up_to_the_largest():
    Y = np.where(X.mean() < X, 2**63 - 1, 2**40)
    assert DOORS["factorize"](Y).relative_error == pytest.approx(DOORS["factorize"](Y / 2.0**63).relative_error)


def test_names_of_an_annotated_matrix_are_those_of_the_features():
    for matrix in (X, sparse.csr_array(X)):
        model = pw.NMF(2, random_state=0).fit(Annotated(matrix))
        assert list(model.feature_names_in_) == [f"gene {j}" for j in range(6)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.transform(Annotated(matrix))
        other = Annotated(matrix)
        other.var = other.var.rename(index={"gene 0": "gene 9"})
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(other)


def test_anndata():
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    frames = {
        "obs": pd.DataFrame(index=[f"cell {i}" for i in range(8)]),
        "var": pd.DataFrame(index=[f"gene {j}" for j in range(6)]),
    }
    for matrix in (X, sparse.csr_matrix(X)):
        given = anndata.AnnData(matrix.copy(), **frames)
        assert np.array_equal(DOORS["factorize"](given).W, DOORS["factorize"](matrix).W)
        assert np.array_equal(DOORS["factorize"](given[:5]).W, DOORS["factorize"](matrix[:5]).W)
        assert list(DOORS["NMF"](given).feature_names_in_) == list(frames["var"].index)


# -- sparse matrices that lie -------------------------------------------------------------------------------


def spoiled(store, **arrays):
    matrix = store(np.eye(8, 6) + 1.0)
    for name, change in arrays.items():
        setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


def put(index, value):
    def change(array):
        changed = array.copy()
        changed[index] = value
        return changed

    return change


def put_row(index, value):
    def change(coords):
        return (put(index, value)(coords[0]), *coords[1:])

    return change


WRAPPING = [0, 2**31 - 1, -(2**31), -1, 48, 48, 48, 48, 48]  # differences in 32 bits are all >= 0
LIES = {
    "index too large": {"indices": put(3, 10**6)},
    "index negative": {"indices": put(3, -(10**6))},
    "indptr falls": {"indptr": put(2, 10**6)},
    "indptr negative": {"indptr": put(2, -5)},
    "indptr ends early": {"indptr": put(-1, 3)},
    "indptr ends late": {"indptr": put(-1, 10**6)},
    "indptr starts late": {"indptr": put(0, 3)},
    "indptr is short": {"indptr": lambda array: array[:-1]},
    "indptr wraps": {"indptr": lambda array: np.array(WRAPPING[: len(array)], dtype=np.int32)},
    "indptr without entries": {"indptr": lambda array: np.array([0, 10**6] + [0] * (len(array) - 2), dtype=np.int32)},
    "few indices": {"indices": lambda array: array[:-7]},
    "few values": {"data": lambda array: array[:-7]},
}


@PAIRS
@DOORS_AND_NAMES
@pytest.mark.parametrize("store", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("lie", LIES)
def test_sparse_indices_are_checked(lie, store, door):
    if lie == "indptr wraps" and store is sparse.csc_matrix:
        pytest.skip("it has fewer columns than that takes")
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        door(spoiled(store, **LIES[lie]))


@DOORS_AND_NAMES
def test_so_are_those_of_other_formats(door):
    others = {
        "coo": spoiled(sparse.coo_array, coords=put_row(3, 10**6)),
        "coo, negative": spoiled(sparse.coo_array, coords=put_row(3, -1)),
        "bsr": spoiled(lambda X: sparse.bsr_array(X, blocksize=(2, 3)), indices=put(1, 10**6)),
        "bsr, indptr": spoiled(lambda X: sparse.bsr_array(X, blocksize=(2, 3)), indptr=put(1, 10**6)),
        "lil": spoiled(sparse.lil_array, rows=put(2, [0, 1, 2, 3, 4, 10**6])),
    }
    for matrix in others.values():
        with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
            door(matrix)


def test_a_flag_that_claims_order_is_not_believed():
    disordered = shuffled_csr(X)
    disordered.has_canonical_format = disordered.has_sorted_indices = True
    assert np.allclose(DOORS["factorize"](disordered).W, DOORS["factorize"](sparse.csr_array(X)).W)


# -- what is seen of X where it comes in ---------------------------------------------------------------------

Y = np.where(np.arange(2400).reshape(60, 40) % 3, 0.0, np.random.default_rng(0).uniform(0.1, 1.0, size=(60, 40)))
ENTRIES = {
    "plain": Y,
    "negative": -Y,
    "mixed": Y - 0.5,
    "one value": 0.25 * (Y > 0),
    "one value, below 0": np.full(Y.shape, -3.0),
    "two values": np.sign(Y) * np.where(np.arange(40) % 2, 1.0, -1.0),
    "zeros": 0 * Y,
    "huge": 1e300 * Y,
    "tiny": 1e-300 * Y,
    "subnormal": 5e-324 * (Y > 0.5),
    "single precision": Y.astype(np.float32),
    "in columns": np.asfortranarray(Y),
}


def expected_summary(values: np.ndarray) -> tuple:
    """By NumPy, in a unit in which squares are safe."""
    kept, unit = np.unique(values[values != 0]), 2.0 ** round(np.log2(np.abs(values).max() or 1))
    sizes = np.ldexp(np.abs(values.astype(float)), -int(np.log2(unit)))
    one_value = bool(kept.size == 0 or np.all(kept == values.max()))
    numbers = values.min(), values.max(), np.count_nonzero(values), one_value, unit
    return (*map(float, numbers), sizes.sum(), np.square(sizes).sum())


@pytest.mark.slow_cases("single precision")
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("values", ENTRIES.values(), ids=ENTRIES)
def test_the_summary_of_the_door_is_that_of_the_entries(values, store):
    found = observed(store(values)).data
    assert "summary" in found.__dict__
    assert found.summary == pytest.approx(expected_summary(values), rel=1e-12)
    assert found.summary == pytest.approx(as_data(checked_data(store(values))).summary, rel=1e-14)


def test_zeros_that_are_stored_are_dropped():
    stored = sparse.csr_array(Y)
    stored.data[5:9] = 0.0, -0.0, 0.0, 0.0
    found = observed(stored).data
    assert found.matrix.nnz == found.summary.n_nonzeros == np.count_nonzero(Y) - 4
    assert found.extremes == (0.0, stored.data.max())


def test_a_copy_without_order_is_made_of_X_with_entries_listed_twice():
    parts = np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])
    found = observed(sparse.csr_array(parts, shape=(2, 2))).data
    assert found.extremes == (0.0, 3.0)
    assert found.summary.n_nonzeros == found.matrix.nnz == 2
    assert found.norm2 == 18.0


ORDERS = {
    "in order": lambda X: X,
    "rows in other order": shuffled_csr,
    "an entry twice": lambda X: sparse.csr_array((X.data, put(1, X.indices[0])(X.indices), X.indptr), shape=X.shape),
    "the same over two rows": lambda X: sparse.csr_array(np.eye(6)[[0, 0, 1, 1, 5]]),
    "empty rows": lambda X: sparse.csr_array(np.eye(8, 6)[[7, 0, 7, 7, 3, 7]]),
    "no entries": lambda X: sparse.csr_array((8, 6)),
    "long indices": lambda X: sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64))),
    "whole numbers": lambda X: (10 * X).astype(np.int32),
}


@pytest.mark.parametrize("order", ORDERS)
def test_order_is_seen_as_SciPy_sees_it(order):
    stored = ORDERS[order](sparse.csr_array(X))
    plain = sparse.csr_array((stored.data, stored.indices, stored.indptr), shape=stored.shape)
    for store in (stored, stored.T):
        checked = checked_data(store)
        assert checked.has_canonical_format == plain.has_canonical_format
        assert np.shares_memory(checked.indices, stored.indices) or not stored.nnz
    assert plain.has_canonical_format == (order not in ("rows in other order", "an entry twice"))
    untold = plain.copy()
    untold.has_canonical_format = False
    check_indices(untold, "X")  # which need not ask SciPy
    assert untold.has_canonical_format == (plain.has_canonical_format and plain.nnz > 0)


# -- tensors ------------------------------------------------------------------------------------------------

PLACES = [[0, 0, 0], [1, 1, 1]]
NO_TENSOR = {
    "ragged coords": ([[0, 1, 2], [1]], [1.0, 2.0], None, "the coords of a SparseTensor must be an array"),
    "ragged values": (PLACES, [[1.0], [1.0, 2.0]], None, "the values of a SparseTensor must be an array"),
    "values without coords": ([], [1.0, 2.0], (2, 2, 2), r"as many values; got coords of shape \(0, 3\)"),
    "turned coords": (np.zeros((3, 5), int), np.ones(5), None, "pass coords.T$"),
    "text in the shape": (PLACES, [1.0, 2.0], ("a", 2, 2), "whole numbers >= 1, one for each mode; got .'a'"),
    "a number as shape": (PLACES, [1.0, 2.0], 8, "whole numbers >= 1, one for each mode; got 8"),
    "shape of other order": (PLACES, [1.0, 2.0], (2, 2), r"must be 3 whole numbers, as coords say; got \(2, 2\)"),
    "beyond the shape": (PLACES, [1.0, 2.0], (2, 2, 1), "places are counted from 0"),
    "beyond int64": (np.array(PLACES, np.uint64) + np.uint64(2**63), [1.0, 2.0], None, "coords go up to 9223372036854"),
    "text values": (PLACES, ["a", "b"], None, "values of a SparseTensor must be real numbers, got an array of <U1"),
    "complex values": (PLACES, [1j, 1.0], None, "values of a SparseTensor must be real numbers, .* complex128"),
    "order 1": ([[0], [1]], [1.0, 2.0], None, "two modes or more"),
    "order 1, no entries": ([], [], (3,), "two modes or more"),
}


@pytest.mark.parametrize("coords, values, shape, sentence", NO_TENSOR.values(), ids=NO_TENSOR)
def test_what_is_no_sparse_tensor_gets_a_sentence(coords, values, shape, sentence):
    with pytest.raises(ValueError, match=sentence):
        pw.SparseTensor(coords, values, shape)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_entries_that_add_up_to_infinity_are_infinite(kind):
    large = 0.6 * np.finfo(kind).max
    for coords in ([[0, 0, 0], [0, 0, 0], [1, 1, 1]], [[0, 0], [0, 0], [1, 1]]):
        T = pw.SparseTensor(coords, np.array([large, large, 1.0], kind))
        with pytest.raises(ValueError, match=r"X contains 1 infinite entry: .* drop the"):
            pw.factorize(T, 1)
    parts = np.array([large, large, 1.0], kind), np.array([0, 0, 1]), np.array([0, 2, 3])
    with pytest.raises(ValueError, match="X contains 1 infinite entry"):
        pw.factorize(sparse.csr_array(parts, shape=(2, 2)), 1)
    T = pw.SparseTensor(PLACES, np.array([large, large], kind))
    assert pw.factorize(T, 2, random_state=0).relative_error < 1e-3


def test_complex_numbers_in_sparse_matrices_are_refused():
    with pytest.raises(ValueError, match=r"Complex data not supported$"):
        pw.factorize(sparse.csr_array(X + 1j), 2)


def test_nested_lists_of_any_order():
    T = make_cp((3, 2, 2, 3, 2, 2), 1, random_state=0).X
    assert np.array_equal(*(pw.factorize(given, 1, random_state=0).factors[0] for given in (T, T.tolist())))
    nest: list = []
    nest += [nest] * 9
    with pytest.raises(ValueError, match=r"must be a matrix or tensor of numbers.* object of type list"):
        pw.factorize(nest, 1)


@pytest.mark.parametrize("door", ["NMF", "Dictionary", "function"])
def test_tensors_at_the_doors_of_matrices_are_shown_others(door):
    for T in (np.ones((3, 3, 3)), pw.SparseTensor(PLACES, [1.0, 2.0])):
        with pytest.raises(ValueError, match=r"a matrix of numbers.*3 modes, which pw.NTF and pw.factorize take"):
            DOORS[door](T)


# -- the largest numbers there are --------------------------------------------------------------------------

LARGEST = np.finfo(np.float64).max


@PAIRS
@pytest.mark.parametrize("unit", [LARGEST, 5e-310], ids=str)
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "options", [{}, {"loss": "kl"}, {"loss": "l1"}, {"loss": 5.0}, {"solver": "greedy"}, {"symmetric": True}], ids=str
)
def test_units_at_the_end_of_the_numbers(options, store, unit):
    Y = X @ X.T if options.get("symmetric") else X
    Y = Y / Y.max()
    plain, extreme = (pw.factorize(store(u * Y), 2, random_state=0, **options) for u in (1.0, unit))
    assert extreme.relative_error == pytest.approx(plain.relative_error, abs=1e-5)
    if plain.loss.quadratic:
        assert extreme.certify(store(unit * Y)).bound == pytest.approx(plain.certify(store(Y)).bound, abs=1e-5)


@pytest.mark.slow
def test_a_factor_ends_at_the_largest_number_and_the_status_says_so():
    result = pw.factorize(LARGEST * X / X.max(), 2, structure_H=s.UnitNorm(), random_state=0)
    assert np.all(np.isfinite(result.W))
    assert result.status == "stalled" or result.W.max() < LARGEST


@pytest.mark.parametrize("bound", [1e200, 1e-200])
def test_bounds_at_the_end_of_the_numbers(bound):
    """Their product is no number, the unit of X has to be one."""
    unit = bound if bound > 1 else 1e-300
    box = s.Box(0, bound)
    result = pw.factorize(unit * X, 2, structure_W=box, structure_H=box, random_state=0, max_iter=50, tol=0)
    assert result.certificate.feasible
