"""Numba kernels for NumPy arrays: what solvers, data and structures call. They split the rows over threads; the
compiled bodies are module-level functions of arrays and numbers, cached on disk."""

import numpy  # its functions are kernels for these arrays, too

from ..threads import blas
from .arrays import (
    asarray,
    astype,
    column_extremes,
    column_sums,
    columns,
    concatenate,
    difference,
    equal,
    finite_rows,
    gradient,
    largest_by_rows,
    ldexp,
    lifted,
    minimum,
    nonzero_columns,
    plus_number,
    plus_scaled,
    scaled,
    times,
    to_numpy,
)
from .budgets import with_budgets
from .compress import compress
from .dense import dense_product
from .digest import digest
from .expansion import expansion, losses
from .extrapolate import extrapolate
from .gains import gain_columns, gain_rows, quadratic_gains
from .gcd import gcd
from .gram import gram
from .hals import hals
from .hessians import given_grams, given_slopes, hessians, row_grams
from .least_squares import least_squares
from .mixed_norm import mixed_norm
from .mu import mu
from .newton import newton
from .newton_kl import newton_kl
from .own_grams import own_grams, own_slopes
from .products import is_narrow, product, sparse_product, transposed_product
from .projections import keep_largest, project_hoyer, project_simplex
from .pursuit import pursue
from .shapes import isotonic, smooth, unimodal
from .shared_newton import rescaled, shared_newton
from .smooth_l1 import smooth_l1
from .splits import admm_dual, admm_free, admm_rhs, admm_target, few_nonzeros_fit
from .sums import all_finite, falls, inner, power_sums, statistics, sum_abs
from .symmetric_cd import symmetric_cd, symmetric_gains
from .tensors import contract, khatri_rao_rows, sparse_mttkrp
from .transpose import transpose
from .weighted_median import residuals, weighted_median

alone = blas.on_one_thread  # a context in which kernels have the cores to themselves
