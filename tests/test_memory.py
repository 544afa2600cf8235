"""Sparse data stays sparse and W @ H is never formed: peak memory, measured in a process of its own."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from scipy import sparse
import partwise as pw

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

warm = sparse.random(200, 150, 0.1, "csr", rng=np.random.default_rng(0))
for solver in ("hals", "gcd", "mu"):
    pw.factorize(warm, 3, solver=solver, max_iter=2, tol=0).certify(warm)   # kernels are compiled now
X = sparse.random(*SHAPE, NONZEROS / (SHAPE[0] * SHAPE[1]), "csr", rng=np.random.default_rng(0))
before = peak()
for solver in ("hals", "gcd", "mu"):
    result = pw.factorize(X, 10, solver=solver, init=INIT, random_state=0, max_iter=3, tol=0)
result.certify(X)
model = pw.NMF(10, max_iter=3, tol=0).fit(X)
model.transform(X)
print(peak() - before)
"""


@pytest.mark.parametrize("init", ["'random'", "'nndsvda'", "'spa'"])
@pytest.mark.parametrize("shape", [(30_000, 20_000), (20_000, 30_000)])
def test_peak_memory_of_sparse_data(init, shape):
    """Dense, X or W @ H would take 4.8 GB, a float64 mask of it too; all we may hold is a few copies of X and of
    the factors."""
    nonzeros, rank = 600_000, 10
    program = PROGRAM.replace("SHAPE", str(shape)).replace("NONZEROS", str(nonzeros)).replace("INIT", init)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    grown = int(run.stdout)
    storage, factors = 12 * nonzeros, 8 * sum(shape) * rank
    assert grown < 12 * storage + 30 * factors
    assert grown < 0.1 * 8 * shape[0] * shape[1]


def test_peak_memory_of_the_rigorous_bound():
    """A long sparse matrix with a short side: the Gram of that side, and no more."""
    shape, nonzeros = (1_000_000, 300), 2_000_000
    program = PROGRAM.replace("SHAPE", str(shape)).replace("NONZEROS", str(nonzeros)).replace("INIT", "'random'")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 12 * 12 * nonzeros + 30 * 8 * sum(shape) * 10 < 8 * shape[0] * shape[1] * 2
