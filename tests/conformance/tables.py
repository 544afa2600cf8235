"""What the conformance tests run over. A new loss, structure, solver or storage is tested by one line here."""

from functools import cache

import numpy as np
from scipy import sparse

from partwise import init, losses, solvers
from partwise import structures as s
from partwise.data import SparseTensor, as_data
from partwise.data.base import khatri_rao
from partwise.datasets import make_parts
from partwise.problem import pose
from partwise.problem.symmetric import pose_as
from partwise.registry import refusal

RNG = np.random.default_rng(7)
RANK, SHAPE = 3, (9, 7)
PLANTED = make_parts(*SHAPE, RANK, zeros=0.3, random_state=3)
KNOWN = RNG.uniform(size=PLANTED.H.shape) < 0.5  # entries of H that may be given
SIZES = {3: (5, 4), 4: (4, 3, 3)}  # of the modes of tensors but the last


def tensor_of(factors):
    """`[[factors]]`."""
    return (factors[0] @ khatri_rao(factors[1:]).T).reshape([len(A) for A in factors])


def sparse_tensor(X):
    coords = np.argwhere(X)
    return SparseTensor(coords, X[tuple(coords.T)], X.shape)


LOSSES = {
    "frobenius": losses.Frobenius(),
    "kl": losses.KL(),
    "kullback-leibler": losses.KL(),
    "itakura-saito": losses.ItakuraSaito(),
    "beta": losses.Beta(1.5),
    "beta 3": losses.Beta(3),
    "beta 0.5": losses.Beta(0.5),
    "beta -1": losses.Beta(-1),
    "l1": losses.L1(),
    "l1, zeros count half": losses.L1(zero_weight=0.5),
    "huber": losses.Huber(0.15),
}


def structures_of(H, of_parts):
    """For a factor with the parts of H, whichever way it lies; `of_parts(A, count)`: some of its parts."""
    return {
        "nonnegative": s.NonNegative(),
        "free": s.Free(),
        "l1": s.L1(0.3),
        "l2": s.L2(0.4),
        "elastic": s.Elastic(0.2, 0.3),
        "box": s.Box(0.1, 0.8),
        "box arrays": s.Box(-H, H + 0.1),
        "binary": s.Binary(),
        "fixed": s.Fixed(H),
        "fixed partly": s.Fixed(np.where(KNOWN if H.shape == KNOWN.shape else KNOWN.T, H, np.nan)),
        "fixed parts": s.Fixed(of_parts(H, 2)),
        "nonnegative & l1": s.NonNegative() & s.L1(0.2),
        "nonnegative & fixed parts": s.NonNegative() & s.Fixed(of_parts(H, 1)),
        "binary & l1": s.Binary() & s.L1(0.2),
        "binary & fixed parts": s.Binary() & s.Fixed(np.round(of_parts(H, 1) / H.max())),
        "nonnegative & elastic & box": s.NonNegative() & s.Elastic(0.1, 0.2) & s.Box(upper=0.7),
    }


def tied_of(H, of_parts):
    """The same, of entries that are tied to each other; most are closed forms, the last ones take turns."""
    return {
        "sparse": s.Sparse(2),
        "equal_nonzeros": s.EqualNonzeros(2),
        "pattern": s.Pattern([1, 2], 1),
        "unit_norm": s.UnitNorm(),
        "simplex": s.Simplex(),
        "hoyer": s.Hoyer(0.4),
        "group_sparsity": s.GroupSparsity([1, 2], [0.3, 0.6]),
        "orthogonal_to": s.OrthogonalTo(1),
        "orthogonal": s.Orthogonal(),
        "monotone": s.Monotone(),
        "unimodal": s.Unimodal(),
        "smooth": s.Smooth(0.5),
        "columns": s.Columns({0: s.Sparse(3, per="component")}),
        "projection": s.Projection(
            lambda H: np.clip(H, 0, 1), name="clipped", exact=True, convex=True, nonnegative=True
        ),
        "nonnegative & sparse": s.NonNegative() & s.Sparse(4, per="component"),
        "nonnegative & sparse & unit_norm": s.NonNegative() & s.Sparse(4, per="component") & s.UnitNorm(),
        "sparse & group_sparsity": s.Sparse(4, per="component") & s.GroupSparsity(sparsity=0.85),
        "nonnegative & orthogonal_to": s.NonNegative() & s.OrthogonalTo(2, nonzeros=3),
        "nonnegative & orthogonal_to, successive": s.NonNegative() & s.OrthogonalTo(2, nonzeros=3, method="successive"),
        "nonnegative & pattern & equal_nonzeros": s.NonNegative() & s.Pattern([1, 2], 1) & s.EqualNonzeros(2),
        "nonnegative & unimodal": s.NonNegative() & s.Unimodal(),
        "sparse & l1 & fixed parts": s.Sparse(5, per="component") & s.L1(0.1) & s.Fixed(of_parts(H, 1)),
        "nonnegative & smooth": s.NonNegative() & s.Smooth(0.5),
        "nonnegative & orthogonal": s.NonNegative() & s.Orthogonal(),
        "equal_nonzeros & unit_norm": s.EqualNonzeros(3, per="component") & s.UnitNorm(),
        "hoyer & unit_norm": s.Hoyer(0.4) & s.UnitNorm(),
        "sparse & unit_norm": s.Sparse(2) & s.UnitNorm(),
        "sparse & hoyer": s.Sparse(2) & s.Hoyer(0.4),
        "sparse & orthogonal": s.Sparse(2) & s.Orthogonal(),
        "sparse & unimodal": s.Sparse(2) & s.Unimodal(),
    }


STRUCTURES, TIED = (make(PLANTED.H, lambda A, count: A[:count]) for make in (structures_of, tied_of))  # of H

SOLVERS = {
    "hals": solvers.HALS(),
    "cd": solvers.HALS(sweeps=1, extrapolate=False),
    "hals, shuffled": solvers.HALS(shuffle=True),
    "gcd": solvers.GCD(),
    "gcd, plain": solvers.GCD(extrapolate=False),
    "newton_kl": solvers.NewtonKL(),
    "newton_kl, plain": solvers.NewtonKL(sweeps=1, extrapolate=False),
    "newton": solvers.Newton(),
    "shared_newton": solvers.SharedNewton(),
    "newton, plain": solvers.Newton(steps=2, extrapolate=False),
    "mu": solvers.MU(),
    "mu_extrapolated": solvers.MU(extrapolate=True),
    "weighted_median": solvers.WeightedMedian(),
    "weighted_median, thorough": solvers.WeightedMedian(sweeps=3, exact_blocks=True),
    "admm": solvers.ADMM(),
    "palm": solvers.PALM(),
    "mixed_norm": solvers.MixedNorm(),
    "mixed_norm, plain": solvers.MixedNorm(rounds=1, extrapolate=False),
    "symmetric_cd": solvers.SymmetricCD(),
    "symmetric_gn": solvers.SymmetricGN(),
    "greedy": solvers.Greedy(),
    "streamed": solvers.Streamed(),
    "streamed, plain": solvers.Streamed(extrapolate=False),
    "symmetric_cd, plain": solvers.SymmetricCD(sweeps=1, extrapolate=False),
}

# what a solver is for, where it does not take nonnegative factors without more
NEEDED = {solvers.MixedNorm: s.GroupSparsity(sparsity=0.4)}

# what `symmetric` may be, of `X ~ A A'`, and how X is held
SYMMETRIC = {
    "symmetric": (True, np.asarray),
    "symmetric, sparse": (True, sparse.csr_array),
    "off-diagonal": ("off-diagonal", np.asarray),
    "off-diagonal, sparse": ("off-diagonal", sparse.csr_array),
}

INITS = {
    "random": init.Random(),
    "nndsvd": init.NNDSVD("zeros"),
    "nndsvda": init.NNDSVD("mean"),
    "nndsvdar": init.NNDSVD("random"),
    "spa": init.SPA(),
    "greedy": init.GreedyLS(),
    "greedy-l1": init.GreedyL1(),
    "smooth-l1": init.SmoothL1(),
}


def csr_with_gaps(X):
    """The numbers of a real part lie two apart."""
    return sparse.csr_array(X.astype(complex)).real


def shuffled_csr(X):
    """CSR with unsorted indices, duplicates and explicit zeros, 64-bit indices."""
    coo = sparse.coo_array(X)
    order = RNG.permutation(coo.nnz)
    rows, columns, values = coo.row[order], coo.col[order], coo.data[order]
    rows, columns = (np.concatenate([i, i, [0]]).astype(np.int64) for i in (rows, columns))
    values = np.concatenate([values / 2, values / 2, [0.0]])
    by_row = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(rows[by_row], np.arange(X.shape[0] + 1)).astype(np.int64)
    M = sparse.csr_array(X.shape)
    M.data, M.indices, M.indptr = values[by_row], columns[by_row], indptr
    return M


STORAGES = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "csr matrix": sparse.csr_matrix,
    "coo": sparse.coo_array,
    "lil": sparse.lil_array,
    "dok": sparse.dok_array,
    "bsr": sparse.bsr_array,
    "dia": sparse.dia_array,
    "disordered csr": shuffled_csr,
    "csr with gaps in memory": csr_with_gaps,
}


# tensors with the parts of H in their last mode, by order
TENSORS = {
    order: tensor_of([*(RNG.uniform(size=(dim, RANK)) for dim in sizes), PLANTED.H.T]) for order, sizes in SIZES.items()
}
OF_TENSORS = {
    name: structure
    for make in (structures_of, tied_of)
    for name, structure in make(PLANTED.H.T, lambda A, count: A[:, :count]).items()
}


def tensor_problem_of(order, name, loss, mode=-1):
    """The planted tensor with a structure, by its name, for a mode, to which the last is moved; the others are
    nonnegative."""
    X, stated = TENSORS[order] + 0.1 * (loss.degree <= 0), [s.NonNegative()] * order
    stated[mode] = OF_TENSORS[name]
    return pose(as_data(np.moveaxis(X, -1, mode)), loss, stated, RANK).normalized()


def problem_of(structure, loss=None, X=None, structure_W=None):
    """The planted problem with a structure for H; W is nonnegative. Without zeros where the loss does not take them."""
    loss = loss or losses.Frobenius()
    X = (PLANTED.X + 0.1 * (loss.degree <= 0)) if X is None else X
    stated = structure_W or s.NonNegative(), structure
    return pose(as_data(X), loss, stated, RANK).normalized()


def symmetric_problem_of(name, X=PLANTED.X):
    """Of the similarities of the rows of X."""
    symmetric, store = SYMMETRIC[name]
    similar = as_data(store(X @ X.T))
    return pose_as(symmetric, similar, losses.Frobenius(), (s.NonNegative(), s.NonNegative()), RANK).normalized()


def symmetric_tensor_problem_of(order, store=np.asarray):
    """Of the parts of H, in all modes."""
    data = as_data(store(tensor_of([PLANTED.H.T] * order)))
    return pose_as(True, data, losses.Frobenius(), [s.NonNegative()] * order, RANK).normalized()


@cache
def loss_for(solver):
    """The first in the table that a solver minimises over two factors; None where it is for `X ~ A A'` alone."""
    taken = (loss for loss in LOSSES.values() if refusal(solver, problem_of(needed(solver), loss)) is None)
    return next(taken, None)


def needed(solver):
    """What a solver is for, in one factor."""
    return NEEDED.get(type(solver), s.NonNegative())


def problem_for(solver, X, rank, structure=None, store=np.asarray):
    """A problem that a solver is for, with a structure for H; of X, or of the similarities of its rows."""
    loss, stated = loss_for(solver), (needed(solver), structure or s.NonNegative())
    if loss is None:
        return pose_as(True, as_data(store(X @ X.T)), losses.Frobenius(), (stated[0],) * 2, rank).normalized()
    return pose(as_data(store(X)), loss, stated, rank).normalized()
