"""Structures made of structures."""

from dataclasses import dataclass

import numpy as np

from .base import Structure
from .elementwise import Elementwise


@dataclass(frozen=True, eq=False, repr=False)
class All(Structure):
    """All of `parts` at once, written `a & b`: sets are intersected, penalties added.

    Binding it looks for one closed form of the whole. Elementwise parts have one: the tighter bounds, the sums
    of the weights.
    """

    parts: tuple[Structure, ...]

    def __post_init__(self):
        flat = []
        for part in self.parts:
            flat += part.parts if isinstance(part, All) else [part]
        object.__setattr__(self, "parts", tuple(flat))

    @property
    def rowwise(self):
        return all(part.rowwise for part in self.parts)

    def bind(self, shape, transposed, name):
        parts = [part.bind(shape, transposed, name).elementwise for part in self.parts]
        lower, upper = parts[0].lower, parts[0].upper
        for part in parts[1:]:
            lower, upper = np.maximum(lower, part.lower), np.minimum(upper, part.upper)
        if binary := any(part.binary for part in parts):
            lower, upper = np.ceil(lower), np.floor(upper)
        if np.any(lower > upper):
            raise ValueError(f"no value of {name} satisfies {self}: its bounds exclude each other somewhere")
        # bound already: arrays are tall and complete
        return Elementwise(lower, upper, sum(p.l1 for p in parts), sum(p.l2 for p in parts), binary)

    def _unbound(self, *_):
        raise TypeError(f"{self} has no shape yet: bind it to a factor first")

    rescaled = value = prox = violation = gains = _unbound

    def __repr__(self):
        return " & ".join(map(repr, self.parts))
