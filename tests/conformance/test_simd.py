"""Vector code and plain loops give the same sums, and the right one is taken."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import partwise as pw
from partwise.kernels.cpu import simd
from partwise.kernels.cpu.simd import VECTOR, VECTORS, llvm, plain

RNG = np.random.default_rng(3)
WAYS = {"llvm": llvm, "plain": plain}


def panel(f):
    """An odd number of rows."""
    return lambda A, i, n, out: f(A[1 : 3 * n + 4].reshape(3, n + 1), 2, 0, A[n:], n + 1, A[3:], out)


def gather(f):
    """Of the last vector two entries."""
    return lambda A, i, n, out: f(3, A, i, 2, 2 + n, A[1:], 3, 2, 2 * VECTOR // A.itemsize + 2, out)


def scatter(f):
    """Of the last vector one entry."""
    return lambda A, i, n, out: f(2, A, i, 2, 2 + n, A[1:], 5, VECTOR // A.itemsize + 1, 3, 2, out)


def dots(f):
    return lambda A, i, n, out: f(4, A, A[3:], 1, n + 2, n, out, 1)


def moments(f):
    def of(A, i, n, out):
        out[0], out[1] = f(A, A[2:], A[3:], 1, n)

    return of


def combine(f):
    return lambda A, i, n, out: f(A[3:], i, min(n, 5), A, n, out)


def renew(f):
    """With zeros in x, and models at and below the floor."""

    def of(A, i, n, out):
        x, y = A[:n].copy(), A[n : 2 * n] - A.dtype.type(0.5)
        for j in range(0, n, 3):
            x[j] = 0
        for j in range(0, n, 4):
            y[j] = 0
        f(x, y, A[2:], 1, A.dtype.type(0.25), n, out[:n], out[n : 2 * n])
        out[2 * n : 3 * n] = y

    return of


def pull(f):
    def of(A, i, n, out):
        out[0] = f(A, A[n:], A[2:], 1, A[0], n)

    return of


def tile(f):
    return lambda A, i, n, out: f(A, n + 1, A[2:], i, n, out)


def multiplied(f):
    return lambda A, i, n, out: f(A, 3, A[1:], n, out, 2)


def outer(f):
    return lambda A, i, n, out: f(2, A, 1, 1 + n // 4, 3, 3, 1, out)


FUNCTIONS = (panel, gather, scatter, dots, moments, combine, renew, pull, tile, outer, multiplied)


@pytest.mark.slow_cases("^(?!gather-float64)")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_plain_loops_are_vector_code_but_for_rounding(function, dtype):
    """Any number of whole vectors, none too, from any place in memory; indices of 32 and 64 bits."""
    lanes = VECTOR // np.dtype(dtype).itemsize
    ways = [njit(function(getattr(code, function.__name__))) for code in WAYS.values()]
    close = {"rtol": 1e-12} if dtype == np.float64 else {"rtol": 2e-5, "atol": 1e-5}
    for number in (0, 1, 2, 5, 9):
        n = number * lanes
        A = RNG.uniform(0.1, 1, size=(n + 9) * (VECTORS + 1) * lanes).astype(dtype)
        indices = RNG.integers(0, n + 9, size=n + 8)
        if dtype == np.float32 and function in (gather, scatter):
            indices = indices.astype(np.int32)
        before = RNG.uniform(size=A.size).astype(dtype)
        results = [before.copy() for _ in ways]
        for way, out in zip(ways, results, strict=True):
            way(A, indices, n, out)
        assert np.allclose(*results, **close), number
        assert n == 0 or not np.array_equal(results[0], before)


@pytest.mark.parametrize("code", WAYS.values(), ids=WAYS)
def test_bits(code):
    bits_of, number_of = code.bits_of, code.number_of
    both = njit(lambda x, bits: (bits_of(x), number_of(bits)))
    values = np.array([1.0, -2.5, 0.0, 1e-310, np.inf, 2.0**-200, np.pi])
    assert [both(x, bits) for x, bits in zip(values, values.view(np.int64), strict=True)] == list(
        zip(values.view(np.int64), values, strict=False)
    )


# -- which one is taken ---------------------------------------------------------------------------------


@pytest.fixture
def no_wish(monkeypatch):
    monkeypatch.delenv("PARTWISE_SIMD", raising=False)


@pytest.mark.usefixtures("no_wish")
def test_vector_code_where_the_processor_has_multiply_add(monkeypatch):
    monkeypatch.setattr(simd, "TRIPLE", "x86_64-unknown-linux-gnu")
    monkeypatch.setattr(simd, "HAS", frozenset(["+fma", "+avx2"]))
    assert simd.chosen() == "llvm"
    monkeypatch.setattr(simd, "HAS", frozenset(["-fma", "+sse2"]))
    assert simd.chosen() == "plain"
    monkeypatch.setattr(simd, "HAS", frozenset(["+fma"]))
    monkeypatch.setattr(simd, "TRIPLE", "aarch64-apple-darwin")
    assert simd.chosen() == "plain"


@pytest.mark.usefixtures("no_wish")
@pytest.mark.parametrize("fault", [AttributeError("module 'numba.core' has no attribute 'cgutils'"), None])
def test_plain_loops_where_numba_has_changed(monkeypatch, fault):
    """What `llvm` takes from inside of Numba may be gone, or do something else."""
    monkeypatch.setattr(simd, "HAS", frozenset(["+fma"]))
    monkeypatch.setattr(simd, "TRIPLE", "x86_64")
    monkeypatch.setattr(simd, "ALLOWED", ((0, 1), (0, 2)))

    def absent(*_):
        raise fault

    if fault:
        monkeypatch.setattr(llvm.Vectors, "multiply_add", absent)
    else:
        monkeypatch.setattr(llvm.Vectors, "multiply_add", lambda self, a, b, c: c)
    monkeypatch.setattr(simd, "compiler", lambda variant: njit)  # what was compiled before is not asked
    with pytest.warns(RuntimeWarning, match="plain loops, which are slower, .*cgutils|wrong sums"):
        assert simd.chosen() == "plain"


@pytest.mark.usefixtures("no_wish")
def test_vector_code_is_tried_with_versions_of_numba_that_are_not_known(monkeypatch):
    monkeypatch.setattr(simd, "HAS", frozenset(["+fma"]))
    monkeypatch.setattr(simd, "TRIPLE", "x86_64")
    tried = []
    monkeypatch.setattr(simd, "check", tried.append)
    assert simd.chosen() == "llvm" and not tried
    monkeypatch.setattr(simd, "ALLOWED", ((0, 1), (0, 2)))
    assert simd.chosen() == "llvm" and tried == [llvm]


def test_versions_of_numba_that_are_known_are_those_that_are_allowed():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    (first, beyond) = re.search(r'"numba>=0\.(\d+),<0\.(\d+)"', text).groups()
    assert ((0, int(first)), (0, int(beyond) - 1)) == simd.ALLOWED


def test_the_environment_has_the_last_word(monkeypatch):
    for way in WAYS:
        monkeypatch.setenv("PARTWISE_SIMD", way)
        assert simd.chosen() == way
    monkeypatch.setenv("PARTWISE_SIMD", "fast")
    with pytest.raises(ValueError, match="PARTWISE_SIMD is 'fast': it may be 'llvm' or 'plain'"):
        simd.chosen()


SETTINGS = {"init": "random", "random_state": 0, "max_iter": 5, "tol": 0}
X = pw.datasets.make_parts(30, 20, 3, zeros=0.3, noise=0.1, random_state=0).X

PROGRAM = f"""
import sys
import partwise as pw
from partwise.kernels.cpu import simd

X = pw.datasets.make_parts(30, 20, 3, zeros=0.3, noise=0.1, random_state=0).X
for loss in sys.argv[1:]:
    print(pw.factorize(X + 0.1 * (loss == "itakura-saito"), 3, loss=loss, **{SETTINGS}).objective)
print(simd.WAY, simd.VECTOR)
"""


def objectives(losses, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "PARTWISE_SIMD"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *losses]
    run = subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=True)
    *numbers, chosen = run.stdout.splitlines()
    return list(map(float, numbers)), chosen


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("losses", [["frobenius"], ["kl", "itakura-saito", "beta(1.5)", "l1"]])
@pytest.mark.slow
def test_every_loss_with_plain_loops(losses):
    """Where Numba is to compile for any processor of its kind, too."""
    expected = [
        pw.factorize(X + 0.1 * (loss == "itakura-saito"), 3, loss=loss, **SETTINGS).objective for loss in losses
    ]
    assert objectives(losses, PARTWISE_SIMD="plain") == (pytest.approx(expected, rel=1e-8), f"plain {VECTOR}")
    generic = objectives(losses, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert generic == (pytest.approx(expected, rel=1e-8), "plain 32")
