"""Sparse data stays sparse and W @ H is never formed: peak memory, measured in a process of its own."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from .peak import printed

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
from scipy import sparse
import partwise as pw
from partwise.kernels.cpu import team

team.Team(2)  # what threads are made of, once in a process

warm = sparse.random(200, 150, 0.1, "csr", rng=np.random.default_rng(0))
NAMES = {"frobenius": ("hals", "gcd", "mu"), "kl": ("mu", "newton", "newton_kl"), "l1": ("weighted_median",)}
SOLVERS = [(loss, name) for loss in LOSSES for name in NAMES[loss]]
for kind in (np.float64, np.float32):  # kernels are compiled now, for single precision too, in which runs begin
    for loss, solver in SOLVERS:
        for init in INITS:
            pw.factorize(warm.astype(kind), 3, loss=loss, solver=solver, init=init, max_iter=2, tol=0)
    pw.factorize(warm.astype(kind), 3, max_iter=3, tol=0).certify(warm.astype(kind))
    for loss in LOSSES:
        pw.NMF(3, loss=loss, max_iter=2, tol=0.01).fit(warm.astype(kind)).transform(warm)
X = sparse.random(*SHAPE, NONZEROS / (SHAPE[0] * SHAPE[1]), "csr", rng=np.random.default_rng(0))
before = peak()
for loss, solver in SOLVERS:
    for init in INITS:
        pw.factorize(X, 10, loss=loss, solver=solver, init=init, random_state=0, max_iter=2, tol=0)
pw.factorize(X, 10, max_iter=3, tol=0).certify(X)
for loss in LOSSES:
    pw.NMF(10, loss=loss, max_iter=2, tol=0.01).fit(X).transform(X)
print(peak() - before)
"""


def grown_by(shape, nonzeros, inits, losses):
    """Bytes by which the peak of a process grows that does all this."""
    program = PROGRAM.replace("SHAPE", str(shape)).replace("NONZEROS", str(nonzeros))
    program = program.replace("INITS", str(inits)).replace("LOSSES", str(losses))
    return printed(program)


WORK = {
    "divergences": (["random", "nndsvda", "spa"], ["frobenius", "kl"]),
    "l1": (["smooth-l1"], ["l1"]),
    "one part at a time": (["greedy-l1"], ["l1"]),
}
SMALL = [(*WORK["divergences"], (14_000, 11_000), 150_000)]
LARGE = [(*work, shape, 600_000) for work, shape in product(WORK.values(), [(30_000, 20_000), (20_000, 30_000)])]


@pytest.mark.parametrize("inits, losses, shape, nonzeros", [*SMALL, *LARGE])
def test_peak_memory_of_sparse_data(inits, losses, shape, nonzeros):
    """Dense, X or W @ H would take 1.2 to 4.8 GB, a float64 mask of it too; all we may hold is a few copies of X and of
    the factors. (A copy in single precision counts 8 of the 12 bytes of an entry.)"""
    rank = 10
    grown = grown_by(shape, nonzeros, inits, losses)
    storage, factors = 12 * nonzeros, 8 * sum(shape) * rank
    assert grown < 14 * storage + 30 * factors
    assert grown < 0.1 * 8 * shape[0] * shape[1]


def test_other_losses_look_at_zeros_row_by_row():
    """beta = 1.5 needs every entry of W @ H, 40 MB of them, and holds a row at a time; factors and their derivatives
    take 16 MB."""
    program = """
import numpy as np
from scipy import sparse
import partwise as pw
from partwise.kernels.cpu import team

team.Team(2)  # what threads are made of, once in a process

def run(X):
    for solver in ("newton", "mu"):
        pw.factorize(X, 2, loss=1.5, solver=solver, init="random", random_state=0, max_iter=1, tol=0)

run(sparse.random(200, 150, 0.1, "csr", rng=np.random.default_rng(0)))
X = sparse.random(100, 50000, 1e-4, "csr", rng=np.random.default_rng(0))
before = peak()
run(X)
print(peak() - before)
"""
    assert printed(program) < 25e6


def test_peak_memory_of_the_rigorous_bound():
    """A long sparse matrix with a short side: the Gram of that side, and no more."""
    shape, nonzeros = (1_000_000, 300), 2_000_000
    assert (
        grown_by(shape, nonzeros, ["random"], ["frobenius"])
        < 12 * 12 * nonzeros + 30 * 8 * sum(shape) * 10
        < 8 * shape[0] * shape[1] * 2
    )


TENSORS = """
import numpy as np
import partwise as pw
from partwise.kernels.cpu import team

team.Team(2)  # what threads are made of, once in a process

def make(shape, nonzeros):
    rng = np.random.default_rng(0)
    coords = np.column_stack([rng.integers(size, size=nonzeros) for size in shape])
    return pw.SparseTensor(coords, rng.poisson(2.0, nonzeros) + 1.0, shape)

def run(T):
    for loss, init in (("frobenius", "random"), ("kl", "random"), ("l1", "smooth-l1")):
        pw.factorize(T, 10, loss=loss, init=init, random_state=0, max_iter=2, tol=0)

run(make((30, 20, 10), 300))
T = make(SHAPE, NONZEROS)
before = peak()
run(T)
print(peak() - before)
"""


@pytest.mark.parametrize("shape", [(3000, 2500, 2000), (30_000, 20_000, 20_000), (500, 400, 300, 200)], ids=str)
def test_peak_memory_of_sparse_tensors(shape):
    """Entries are sorted once for each mode; dense, X would take 100 GB and more."""
    nonzeros, rank, entries = 600_000, 10, 1 << 19
    program = TENSORS.replace("SHAPE", str(shape)).replace("NONZEROS", str(nonzeros))
    sorted_entries = len(shape) * nonzeros * (8 + 4 + 4 + 2 * 4 * len(shape))
    rows_of_others, factors = 3 * entries * 16 * 8, 30 * 8 * sum(shape) * rank
    assert printed(program) < 2 * sorted_entries + rows_of_others + factors


FROM_A_FILE = """
import numpy as np
from scipy import sparse
from partwise.cli import main

def fit(path):
    for loss in ("frobenius", "kl"):
        words = ["--rank", "3", "--max-iter", "2", "--quiet", "--force", "--loss", loss, "--out", FOLDER + "/out"]
        assert main(["fit", path, *words]) == 0

import partwise.data.sparse
partwise.data.sparse.NARROW_FROM = 1
warm = sparse.random_array((2000, 1500), density=0.1, format="csr", rng=np.random.default_rng(0))
warm.data = np.ceil(3 * warm.data)
sparse.save_npz(FOLDER + "/warm.npz", warm)
fit(FOLDER + "/warm.npz")   # kernels are compiled now, and libraries loaded
before = peak()
fit(FOLDER + "/x.npz")
print(peak() - before)
"""


def test_a_file_of_counts_takes_less_than_twice_its_size(tmp_path):
    """From the file to the result and its page: X, its columns in single precision (two thirds of X), and little
    more. (Beyond what an interpreter with all libraries takes, a third of a gigabyte.)"""
    rng, shape, n = np.random.default_rng(0), (40_000, 10_000), 16_000_000
    X = sparse.random_array(shape, density=n / (shape[0] * shape[1]), format="csr", rng=rng, dtype=np.float64)
    X.data = rng.geometric(0.5, X.nnz).astype(np.float64)
    X = sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=shape)
    sparse.save_npz(tmp_path / "x.npz", X, compressed=False)
    program = FROM_A_FILE.replace("FOLDER", repr(str(tmp_path)))
    assert printed(program) < 2 * (tmp_path / "x.npz").stat().st_size
