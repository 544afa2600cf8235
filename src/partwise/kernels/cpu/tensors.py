"""Products of tensors with factors."""

import numpy as np

from .. import threads
from .base import helper
from .team import mapped, over


@mapped
def _contract(P, before, after, out, number, start, stop):
    rank = P.shape[3]
    sums, total = np.empty(rank, P.dtype), np.empty(rank, P.dtype)
    for i in range(start, stop):
        total[:] = 0
        for p in range(P.shape[0]):
            sums[:] = 0
            for q in range(P.shape[2]):
                for k in range(rank):
                    sums[k] += P[p, i, q, k] * after[q, k]
            for k in range(rank):
                total[k] += sums[k] * before[p, k]
        for k in range(rank):
            out[i, k] = total[k]


def contract(P, before, after):
    """`out[i, k] = sum_pq P[p, i, q, k] before[p, k] after[q, k]`: what is left to do for one mode once X has been
    multiplied by the factors of distant modes."""
    out = np.empty((P.shape[1], P.shape[3]), P.dtype)
    work = P.shape[0] * P.shape[2] * P.shape[3]
    over(_contract, threads.split_evenly(P.shape[1], work, threads.LIGHT_WORK), P, before, after, out)
    return out


@helper
def _end_of_fiber(places, p, stop):
    """Where entries end whose places agree with those of p, the last one apart."""
    end, n_prefix = p + 1, places.shape[1] - 1
    while end < stop:
        for m in range(n_prefix):
            if places[end, m] != places[p, m]:
                return end
        end += 1
    return end


@mapped
def _sparse_mttkrp(indptr, places, values, F, scale, out, number, start, stop):
    rank, last = F.shape[1], places.shape[1] - 1
    sums, total = np.empty(rank, F.dtype), np.empty(rank, F.dtype)
    for i in range(start, stop):
        total[:] = 0
        p = indptr[i]
        while p < indptr[i + 1]:
            end = _end_of_fiber(places, p, indptr[i + 1])
            sums[:] = 0
            for q in range(p, end):
                x, row = F.dtype.type(values[q]), F[places[q, last]]
                for k in range(rank):
                    sums[k] += x * row[k]
            for m in range(last):
                row = F[places[p, m]]
                for k in range(rank):
                    sums[k] *= row[k]
            for k in range(rank):
                total[k] += sums[k]
            p = end
        for k in range(rank):
            out[i, k] = total[k] * scale


def sparse_mttkrp(indptr, places, values, F, scale):
    """`out[i] = scale sum_p values[p] prod_m F[places[p, m]]` over the entries of row i, (rows, rank): factors are
    stacked in F. Entries that differ in their last place alone are summed before the other factors are looked at."""
    out = np.empty((indptr.size - 1, F.shape[1]), F.dtype)
    work = (np.diff(indptr) + 1) * np.int64(F.shape[1])
    over(_sparse_mttkrp, threads.split_by_work(work), indptr, places, values, F, scale, out)
    return out


@mapped
def _multiply_rows(F, index, first, out, number, start, stop):
    for j in range(start, stop):
        row = F[index[j]]
        for k in range(F.shape[1]):
            out[j, k] = row[k] if first else out[j, k] * row[k]


def khatri_rao_rows(factors, index):
    """Some rows of the Khatri-Rao product of factors: `out[j] = prod_m factors[m][index[m, j]]`."""
    out = np.empty((index.shape[1], factors[0].shape[1]), factors[0].dtype)
    chunks = threads.split_evenly(*out.shape, threads.LIGHT_WORK)
    for m, F in enumerate(factors):
        over(_multiply_rows, chunks, F, index[m], m == 0, out)
    return out
