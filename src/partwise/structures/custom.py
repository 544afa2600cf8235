"""A structure given by the user's own projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import warn
from ..run.interrupts import at_once
from .base import Structure


@dataclass(frozen=True)
class Lost:
    """Stands for the function of a structure that was read from a file: files hold no functions."""

    name: str

    def __call__(self, A):
        raise ValueError(f"the projection {self.name!r} was read from a file, which holds no functions: state it again")


@dataclass(frozen=True, eq=False, repr=False)
class Projection(Structure):
    """The set onto which `function` projects: it gets W (samples x parts) or H (parts x features) and returns the
    nearest such array, or a near one.

    A result is saved without the function, and a checkpoint with a fingerprint of it.

    Parameters
    ----------
    function : callable
        Gets W or H, and returns the nearest such array, or a near one.
    name : str
        What messages call it.
    exact : bool
        Whether the answer is the nearest.
    convex : bool
        Whether the set is convex.
    cone : bool
        Whether with A also t A is in it for all t > 0; units then do not matter.
    nonnegative : bool
        Whether it has no negative entries.
    interchangeable : bool
        Whether it treats all parts alike.
    transposed, exponent : bool, int
        For inside use: how the factor is stored.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> def alike_at_the_ends(H):
    ...     H = np.maximum(H, 0)
    ...     H[:, [0, -1]] = H[:, [0, -1]].mean(axis=1, keepdims=True)
    ...     return H
    ...
    >>> ends = pw.structures.Projection(alike_at_the_ends, exact=True, convex=True, cone=True, nonnegative=True)
    >>> result = pw.factorize(X, 3, structure_H=ends, random_state=0)
    >>> np.array_equal(result.H[:, 0], result.H[:, -1])
    True
    """

    function: Callable[[np.ndarray], np.ndarray]
    name: str = ""
    exact: bool = False
    convex: bool = False
    cone: bool = False  # type: ignore[assignment]
    nonnegative: bool = False
    interchangeable: bool = False
    transposed: bool = False
    exponent: int = 0
    stage = 5
    transient = ("function",)

    def __post_init__(self):
        if "function" not in vars(self):
            object.__setattr__(self, "function", Lost(self.name))
        if not callable(self.function):
            raise TypeError(f"Projection takes a function of an array, got {self.function!r}")
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", type(self.function).__name__))

    def bind(self, shape, transposed, name):
        bound = self.altered(transposed=transposed)
        probe = np.random.default_rng(0).standard_normal(shape)
        once = bound.prox(np.abs(probe) if self.nonnegative else probe, 0.0)
        if not np.allclose(bound.prox(once, 0.0), once, rtol=1e-6, atol=1e-9 * float(np.abs(once).max(initial=0))):
            warn(
                f"the projection {self.name!r} of {name} is not idempotent: applied to its own result it changes it. "
                "The factors returned are its last result; if that is not a point of your set, mend the function."
            )
        return bound

    def rescaled(self, exponent, objective_exponent):
        return self if self.cone else self.altered(exponent=self.exponent + exponent)

    def value(self, A):
        return 0.0

    def prox(self, A, step):
        given = np.ldexp(A, self.exponent)  # a copy, in the user's units
        given = given.T if self.transposed else given
        with at_once():
            answer = np.asarray(self.function(given))
        if answer.shape != given.shape:
            raise ValueError(
                f"the projection {self.name!r} was given an array of shape {given.shape} and returned one of shape "
                f"{answer.shape}; it must return the same shape"
            )
        if answer.dtype.kind not in "fiub" or not np.all(np.isfinite(answer)):
            raise ValueError(f"the projection {self.name!r} returned something that is not a finite number")
        answer = np.array(answer.T if self.transposed else answer, dtype=A.dtype, order="C")
        return np.ldexp(answer, -self.exponent)

    def __repr__(self):
        return f"Projection({self.name})"
