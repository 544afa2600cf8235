"""X as a sparse tensor: the places of its nonzeros, sorted once for each mode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from ..errors import IncompatibleError
from ..kernels.records import Others, Rows
from .base import Data
from .rows import full_rows, in_unit
from .tensor import SparseTensor

ENTRIES = 1 << 19  # listed in the rows that kernels take at a time, at most: each needs a row of a Khatri-Rao product
SPREAD = 1 << 21  # entries of the rows that are made dense at a time
MOST = 1 << 30  # entries that may be visited one by one, zeros and all


class Unfolding(NamedTuple):
    """Entries in the order of the rows of one mode, and within a row in that of the other modes."""

    indptr: np.ndarray  # (dim + 1,)
    order: np.ndarray  # (n,): which of the stored entries each is
    places: np.ndarray  # (n, order - 1): its rows in the other factors, stacked one below the other


class Piece(NamedTuple):
    """Some rows of an unfolding, as kernels take them."""

    start: int  # rows start to stop
    stop: int
    indices: np.ndarray  # of each entry: which of the columns
    columns: np.ndarray  # (order - 1, n_columns): where a column is in each of the other modes


@dataclass(frozen=True, eq=False)
class Coordinates(Data):
    """Time O(nnz rank order) for a product; memory O(nnz order) for each mode that is looked at, and for a while a row
    of `rank` numbers for each of at most `ENTRIES` entries."""

    coords: np.ndarray  # (nnz, order), sorted, each once
    values: np.ndarray
    unlisted: float = 1.0  # what an entry that is not stored counts

    sparse = True

    @classmethod
    def of(cls, X: SparseTensor, keep_zeros=False):
        coords, values = canonical(X, keep_zeros)
        return cls(X.shape, values.dtype, 1.0, coords, values)

    @property
    def complete(self):
        return self.unlisted == 1

    @property
    def stored(self):
        return self.values.dtype

    @property
    def arrays(self):
        return self.coords, self.values

    def listed(self):
        yield self.values

    def places(self):
        return np.ravel_multi_index(tuple(self.coords.T.astype(np.int64)), self.shape)

    def with_unlisted(self, weight):
        return self.variant(unlisted=weight * self.unlisted)

    # -- unfoldings, made when first needed ------------------------------------------------------------

    @cached_property
    def known(self) -> dict:
        """What is known of unfoldings, whatever the values: shared by all that has the same places."""
        return {}

    @cached_property
    def known_values(self) -> dict:
        """Stored numbers in the order of an unfolding."""
        return {}

    def variant(self, **changes):
        data = super().variant(**changes)
        data.__dict__.update(known=self.known, known_values=self.known_values)
        return data

    def with_values(self, values):
        data = Coordinates(self.shape, values.dtype, 1.0, self.coords, values, self.unlisted)
        data.__dict__["known"] = self.known
        return data

    def select(self, mode, index):
        order = np.argsort(self.coords[:, mode], kind="stable")
        ends = [np.searchsorted(self.coords[order, mode], index, side) for side in ("left", "right")]
        counts = ends[1] - ends[0]
        entries = order[np.repeat(ends[1] - np.cumsum(counts), counts) + np.arange(counts.sum())]
        coords = self.coords[entries]
        coords[:, mode] = np.repeat(np.arange(len(index)), counts)
        shape = (*self.shape[:mode], len(index), *self.shape[mode + 1 :])
        chosen = Coordinates.of(SparseTensor(coords, self.values[entries], shape), keep_zeros=True)
        return chosen.variant(scale=self.scale, dtype=self.dtype, unlisted=self.unlisted)

    def along(self, vectors):
        product = np.ones(len(self.values))
        for mode, vector in enumerate(vectors):
            product = product if vector is None else product * vector[self.coords[:, mode]]
        return product

    def compressed(self):
        if np.all(self.values):
            return self
        tensor = SparseTensor(self.coords, self.values, self.shape)
        return Coordinates.of(tensor).scaled(self.scale).with_unlisted(self.unlisted)

    def unfolding(self, mode: int) -> Unfolding:
        if mode not in self.known:
            others, n = self.columns(mode), len(self.values)
            # entries are in order, and SciPy counts, does not sort: within a row they stay so
            by_row = coo_array((np.ones(n, bool), (self.coords[:, mode], np.arange(n))), (self.shape[mode], n)).tocsr()
            offsets = np.cumsum([0, *(self.shape[m] for m in others)])
            kind = np.int32 if offsets[-1] < 1 << 31 else np.int64
            places = self.coords[by_row.indices][:, others].astype(kind, copy=False) + offsets[:-1].astype(kind)
            self.known[mode] = Unfolding(by_row.indptr.astype(np.int64), by_row.indices, places)
        return self.known[mode]

    def pieces(self, mode: int) -> tuple[Piece, ...]:
        """Rows in pieces of at most `ENTRIES` entries, or one row, columns that occur several times in one of them
        once."""
        key = mode, "pieces"
        if key not in self.known:
            indptr, _, places = self.unfolding(mode)
            cuts = [0]
            while cuts[-1] < self.shape[mode]:
                stop = int(np.searchsorted(indptr, indptr[cuts[-1]] + ENTRIES, side="right")) - 1
                cuts.append(max(stop, cuts[-1] + 1))
            offsets = np.cumsum([0, *(self.shape[m] for m in self.columns(mode))])[:-1]
            found = []
            for start, stop in pairwise(cuts):
                columns, indices = distinct(places[indptr[start] : indptr[stop]] - offsets.astype(places.dtype))
                found.append(Piece(start, stop, indices, np.ascontiguousarray(columns.T)))
            self.known[key] = tuple(found)
        return self.known[key]

    def sorted_values(self, mode: int) -> np.ndarray:
        """Stored numbers in the order of an unfolding."""
        if mode == 0:
            return self.values
        if mode not in self.known_values:
            self.known_values[mode] = self.values[self.unfolding(mode).order]
        return self.known_values[mode]

    # -- what kernels take -----------------------------------------------------------------------------

    def rows(self, mode):
        values, scale = in_unit(self.sorted_values(mode), self.inverse_scale)
        indptr = self.unfolding(mode).indptr
        for start, stop, indices, _ in self.pieces(mode):
            first, last = indptr[start], indptr[stop]
            ends, none = indptr[start : stop + 1] - first, np.empty(0, self.dtype)
            yield Rows(start, ends, indices, values[first:last], scale, False, none, self.unlisted)

    def others(self, factors, mode, rows):
        piece = next(piece for piece in self.pieces(mode) if piece.start == rows.first)
        apart = [factors[other] for other in self.columns(mode)]
        return Others(self.kernels.khatri_rao_rows(apart, piece.columns), apart)

    def cross(self, factors, mode):
        values, scale = in_unit(self.sorted_values(mode), self.inverse_scale)
        stacked = np.concatenate([factors[other] for other in self.columns(mode)]).astype(self.dtype, copy=False)
        indptr, _, places = self.unfolding(mode)
        return self.kernels.sparse_mttkrp(indptr, places, values, stacked, scale)

    def slabs(self, mode):
        columns, indices = distinct(np.delete(self.coords, mode, axis=1))
        entries = self.values.astype(np.float64) / self.scale
        yield csr_array((entries, (indices, self.coords[:, mode])), shape=(len(columns), self.shape[mode]))

    def every_entry(self):
        if self.unlisted == 0:
            return self  # others count nothing
        if math.prod(self.shape) > MOST:
            raise IncompatibleError(
                f"this loss looks at every entry of X, zeros too, and there are {math.prod(self.shape):.3g} of them: "
                "use loss='frobenius', 'kl' or 'l1', for which zeros cost nothing"
            )
        return Spread(self.shape, self.dtype, self.scale, self)

    def take(self, mode, index):
        raise NotImplementedError("rows of a sparse tensor are not made dense")


@dataclass(frozen=True, eq=False)
class Spread(Data):
    """The same with every entry listed, zeros too, some rows at a time."""

    source: Coordinates

    @property
    def complete(self):
        return self.source.complete

    @property
    def stored(self):
        return self.source.stored

    @property
    def arrays(self):
        return self.source.arrays

    def listed(self):
        return self.source.listed()

    def cross(self, factors, mode):
        return self.source.variant(scale=self.scale, dtype=self.dtype).cross(factors, mode)

    def summed_rows(self, mode, power):
        return self.source.variant(scale=self.scale, dtype=self.dtype).summed_rows(mode, power)

    def slabs(self, mode):
        return self.source.variant(scale=self.scale).slabs(mode)

    def rows(self, mode):
        indptr, _, _ = self.source.unfolding(mode)
        values, others = self.source.sorted_values(mode), self.columns(mode)
        coords, sizes = self.source.coords[self.source.unfolding(mode).order], [self.shape[m] for m in others]
        width = math.prod(sizes)
        height = max(1, SPREAD // max(width, 1))
        for start in range(0, self.shape[mode], height):
            stop = min(start + height, self.shape[mode])
            here = slice(indptr[start], indptr[stop])
            block = np.zeros((stop - start, width), self.dtype)
            places = np.ravel_multi_index(tuple(coords[here, m] for m in others), sizes)
            block[coords[here, mode] - start, places] = values[here]
            rows = full_rows(block, self.inverse_scale)._replace(first=start)
            if not self.complete:
                rows = rows._replace(weights=np.where(block.ravel() != 0, 1, self.source.unlisted).astype(self.dtype))
            yield rows


def canonical(X: SparseTensor, keep_zeros: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates in order, each once, and values, not 0 unless zeros are to be kept; the caller's arrays are not
    touched."""
    kind = np.int32 if max(X.shape) < 1 << 31 else np.int64
    coords, values = X.coords.astype(kind), X.values
    if math.prod(X.shape) < 1 << 63:
        order = np.argsort(np.ravel_multi_index(tuple(coords.T), X.shape), kind="stable")
    else:
        order = np.lexsort(coords.T[::-1])
    coords, values = coords[order], values[order]
    new = np.ones(len(coords), bool)
    new[1:] = np.any(coords[1:] != coords[:-1], axis=1)
    if not new.all():
        coords, values = coords[new], np.add.reduceat(values, np.flatnonzero(new))
    kept = values != 0
    return (coords, values) if keep_zeros or kept.all() else (coords[kept], values[kept])


def distinct(coords: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines of whole numbers, each once, in order, and which of these each of the given ones is."""
    sizes = coords.max(axis=0, initial=0).astype(np.int64) + 1
    if math.prod(sizes.tolist()) >= 1 << 63:
        columns, indices = np.unique(coords, axis=0, return_inverse=True)
        return columns, indices.ravel().astype(np.int32)
    keys, indices = np.unique(np.ravel_multi_index(tuple(coords.T), sizes), return_inverse=True)
    return np.column_stack(np.unravel_index(keys, sizes)).astype(coords.dtype), indices.astype(np.int32)
