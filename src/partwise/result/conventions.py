"""Scale and order of parts: what the factorization leaves open, settled by convention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import kernels
from ..data.names import factor_names
from ..data.units import column_norms, root
from ..problem import Factors, Problem, is_binary
from ..problem.parts import part_norms
from ..run.records import Run

NORMS = {"l1": 1, "l2": 2, "max": np.inf}


@dataclass(frozen=True)
class Convention:
    """How to scale and order parts; made and checked before the run, applied after it."""

    problem: Problem
    normalize: Any  # as `factorize` takes it; a pair once it is checked
    sort: bool

    def __post_init__(self):
        if self.normalize in ("balanced", None):
            return
        pair = (self.normalize, "l2") if isinstance(self.normalize, str) else self.normalize
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] not in self.names or pair[1] not in NORMS:
            raise ValueError(
                f"normalize must be 'balanced', None, {', '.join(map(repr, self.names))}, or a pair such as "
                f"({self.names[-1]!r}, 'l1') with one of {', '.join(map(repr, NORMS))}; got {self.normalize!r}"
            )
        if self.problem.symmetric:
            raise ValueError(
                f"normalize={self.normalize!r} would rescale one of the factors, but with "
                f"symmetric={self.problem.symmetric!r} all are A; use normalize=None"
            )
        if not self.scalable[self.names.index(pair[0])].any():
            stated = (f"{s} for {name}" for s, name in zip(self.problem.structures, self.names, strict=True))
            raise ValueError(
                f"normalize={self.normalize!r} would rescale parts, which {' and '.join(stated)} do not allow for any "
                "part; use normalize=None"
            )
        object.__setattr__(self, "normalize", pair)

    @property
    def names(self) -> tuple[str, ...]:
        return factor_names(len(self.problem.structures))

    @cached_property
    def scalable(self) -> np.ndarray:
        """Of which factors a part may be rescaled, (order, rank): where it is one alone, none."""
        free = np.array([structure.scalable(self.problem.rank) for structure in self.problem.structures])
        return free & (free.sum(axis=0) > 1) & (not self.problem.symmetric)

    def apply(self, run: Run) -> Run:
        """The run with its parts rescaled and reordered; the model is the same."""
        factors = run.factors
        scales = self.scales(factors)
        if self.sort and all(structure.interchangeable for structure in self.problem.structures):
            # by norms of the parts as they came, which are the same
            order = np.argsort(-part_norms(factors, self.problem.symmetric), kind="stable")
            scaled = (kernels.of(A).columns(A, order, scale[order]) for A, scale in zip(factors, scales, strict=True))
        elif self.normalize is not None:
            scaled = (kernels.of(A).scaled(A, scale) for A, scale in zip(factors, scales, strict=True))
        else:
            return run
        return replace(run, factors=self.problem.tied(tuple(scaled)))

    def scales(self, factors: Factors) -> np.ndarray:
        """What to multiply the columns of each factor by, (order, rank)."""
        if self.normalize == "balanced":
            # 0/1 parts of the L1 loss are as they should be
            binary = not self.problem.loss.smooth and is_binary(self.problem.to_user(factors))
            if self.scalable.any() and not binary:
                return balancing(factors, self.problem.exponents, self.scalable)
        elif self.normalize is not None:
            return self.unit_norm(factors)
        return np.ones((len(factors), factors[0].shape[1]))

    def unit_norm(self, factors: Factors) -> np.ndarray:
        """The parts of one factor to norm 1 in the user's units, the scale to the first of the others that takes it."""
        name, norm = self.normalize
        mode = self.names.index(name)
        A = factors[mode]
        length = column_norms(A) if norm == "l2" else np.linalg.norm(A.astype(np.float64), NORMS[norm], axis=0)
        length = np.where(self.scalable[mode], np.ldexp(length, self.problem.exponents[mode]), 1.0)
        others = [self.scalable[m] & (m != mode) for m in range(len(factors))]
        takes = np.argmax(others, axis=0)
        scales = [np.where((takes == m) & (length > 0), length, 1.0) for m in range(len(factors))]
        scales[mode] = quotient(1.0, length)
        return np.array(scales)


def balancing(factors: Factors, exponents: Sequence[int], scalable: np.ndarray) -> np.ndarray:
    """What brings the factors of each part to the same norm, in the user's units, and to 0 where one is 0; only those
    that may be rescaled, (order, rank)."""
    norms = np.array([column_norms(A) for A in factors])
    norms = np.ldexp(norms, np.subtract(exponents, exponents[-1])[:, None])  # in the units of the last
    count = np.maximum(scalable.sum(axis=0), 2)
    values, powers = np.frexp(norms)  # whose product is a number
    powers, rest = np.divmod(np.sum(powers, axis=0, where=scalable), count)
    common = np.ldexp(root(np.prod(values, axis=0, where=scalable, initial=1) * 2.0**rest, count), powers)
    return np.where(scalable, [quotient(common, norm) for norm in norms], 1)


def quotient(a, b: np.ndarray) -> np.ndarray:
    """`a / b`, and 1 where b is 0."""
    return np.divide(a, b, out=np.ones_like(b), where=b > 0)
