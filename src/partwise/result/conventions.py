"""Scale and order of parts: what the factorization leaves open, settled by convention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

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
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] not in ("W", "H") or pair[1] not in NORMS:
            raise ValueError(
                "normalize must be 'balanced', None, 'W', 'H', or a pair such as ('H', 'l1') with one of "
                f"{', '.join(map(repr, NORMS))}; got {self.normalize!r}"
            )
        if self.problem.symmetric:
            raise ValueError(
                f"normalize={self.normalize!r} would rescale one of two factors, but with "
                f"symmetric={self.problem.symmetric!r} both are A; use normalize=None"
            )
        if not self.scalable.any():
            W, H = self.problem.structures
            raise ValueError(
                f"normalize={self.normalize!r} would rescale parts, which {W} for W and {H} for H do not allow for any "
                "part; use normalize=None"
            )
        object.__setattr__(self, "normalize", pair)

    @cached_property
    def scalable(self) -> np.ndarray:
        """The parts whose scale may go from one factor to the other, (rank,)."""
        if self.problem.symmetric:
            return np.zeros(self.problem.rank, dtype=bool)
        return np.all([structure.scalable(self.problem.rank) for structure in self.problem.structures], axis=0)

    def apply(self, run: Run) -> Run:
        """The run with its parts rescaled and reordered; `W H` is the same."""
        factors = run.factors
        if self.normalize == "balanced":
            # 0/1 parts of the L1 loss are as they should be
            binary = self.problem.loss.beta is None and is_binary(self.problem.to_user(factors))
            if self.scalable.any() and not binary:
                factors = self.rescaled(factors, balanced(factors, self.problem.exponents))
        elif self.normalize is not None:
            factors = self.rescaled(factors, self.unit_norm(factors))
        if self.sort and all(structure.interchangeable for structure in self.problem.structures):
            order = np.argsort(-part_norms(factors, self.problem.symmetric), kind="stable")
            factors = tuple(np.ascontiguousarray(A[:, order]) for A in factors)
        return replace(run, factors=self.problem.tied(factors))

    def rescaled(self, factors: Factors, other: Factors) -> Factors:
        """Parts that may be rescaled as in the other factors, which have the same parts; those that are held as they
        are."""
        return tuple(np.where(self.scalable, B, A) for A, B in zip(factors, other, strict=True))

    def unit_norm(self, factors: Factors) -> Factors:
        """The parts of one factor to norm 1 in the user's units, the scale to the other factor."""
        name, norm = self.normalize
        mode = "WH".index(name)
        length = np.linalg.norm(factors[mode].astype(np.float64), NORMS[norm], axis=0)
        length = np.ldexp(length, self.problem.exponents[mode])
        scales = {mode: quotient(1.0, length), 1 - mode: np.where(length > 0, length, 1.0)}
        return tuple(A * scales[m].astype(A.dtype) for m, A in enumerate(factors))


def balanced(factors: Factors, exponents: Sequence[int]) -> Factors:
    """The two factors of each part to the same norm, in the user's units; both to 0 where one is."""
    norms = [np.linalg.norm(A, axis=0) for A in factors]
    norms[0] = np.ldexp(norms[0], exponents[0] - exponents[1])  # in the units of the other
    common = np.sqrt(norms[0] * norms[1])
    return tuple(A * quotient(common, norm).astype(A.dtype) for A, norm in zip(factors, norms, strict=True))


def quotient(a, b: np.ndarray) -> np.ndarray:
    """`a / b`, and 1 where b is 0."""
    return np.divide(a, b, out=np.ones_like(b), where=b > 0)
