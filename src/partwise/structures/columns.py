"""Different structures for different components."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from .base import Structure
from .elementwise import FREE, Elementwise
from .intersection import combined
from .traits import combines


@combines("columns", lambda columns: [structure for _, structure in columns.parts])
@dataclass(frozen=True, eq=False, repr=False)
class Columns(Structure):
    """A structure for some components: `Columns({16: Sparse(17, per="component")})`. The other components are free,
    unless it is combined with structures for all of them.

    Parameters
    ----------
    parts : dict of int, or tuple of int, to Structure
        The structure of some components, by their numbers from 0.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> first = pw.structures.Columns({0: pw.structures.Sparse(2, per="component")})
    >>> result = pw.factorize(X, 3, structure_H=pw.structures.NonNegative() & first, n_init=1, tol=0.01, random_state=0)
    >>> int((result.H[0] != 0).sum())
    2
    """

    parts: tuple[tuple[tuple[int, ...], Structure], ...]
    interchangeable = False

    def __init__(self, parts: Any) -> None:
        pairs = []
        for key, structure in dict(parts).items():
            indices = (key,) if isinstance(key, Integral) else tuple(key)
            if not isinstance(structure, Structure):
                raise TypeError(f"Columns takes {{component: structure}}, got {structure!r} for {key!r}")
            pairs.append((tuple(int(j) for j in indices), structure))
        members = [j for indices, _ in pairs for j in indices]
        if not members or len(set(members)) < len(members) or min(members) < 0:
            raise ValueError(f"Columns takes numbers of components, from 0 on, each once; got {members}")
        object.__setattr__(self, "parts", tuple(pairs))

    @classmethod
    def together(cls, entries, parts):
        """Structures that act on every component by itself are combined with those given for some."""
        own = [part for part in parts if isinstance(part, cls)]
        rest = [part for part in parts if not isinstance(part, cls)]
        if len(own) != 1 or not all(part.columnwise for part in rest):
            return None
        pairs = []
        for indices, inner in own[0].parts:
            general = [part.columns(list(indices)) for part in (entries, *rest)]
            pairs.append((indices, combined([*general, inner], "a component")))
        return own[0].altered(parts=tuple(pairs))

    def bind(self, shape, transposed, name):
        members = [j for indices, _ in self.parts for j in indices]
        if max(members) >= shape[1]:
            raise ValueError(f"{self} names component {max(members)}, but {name} has {shape[1]}, from 0 on")
        rest = tuple(j for j in range(shape[1]) if j not in members)
        pairs = [*self.parts, *([(rest, FREE)] if rest else [])]
        return self.altered(
            parts=tuple((indices, inner.bind((shape[0], len(indices)), transposed, name)) for indices, inner in pairs)
        )

    def check(self, shape, name):
        for indices, structure in self.parts:
            structure.check((shape[0], len(indices)), name)

    def scalable(self, rank):
        found = np.zeros(rank, dtype=bool)
        for indices, structure in self.parts:
            found[list(indices)] = structure.scalable(len(indices))
        return found

    def rescaled(self, exponent, objective_exponent):
        return self.altered(
            parts=tuple((indices, s.rescaled(exponent, objective_exponent)) for indices, s in self.parts)
        )

    def value(self, A):
        return sum(structure.value(A[:, indices]) for indices, structure in self.parts)

    def row_values(self, A):
        return sum(structure.row_values(A[:, indices]) for indices, structure in self.parts)

    def each(self, A, function):
        """A with every group of components replaced by `function(structure, group)`."""
        out = np.empty_like(A)
        for indices, structure in self.parts:
            out[:, indices] = function(structure, np.ascontiguousarray(A[:, indices]))
        return out

    def prox(self, A, step):
        return self.each(A, lambda structure, B: structure.prox(B, step))

    def settle(self, A):
        return self.each(A, lambda structure, B: structure.settle(B))

    def within(self, A, places):
        out = np.empty_like(A)
        for indices, structure in self.parts:
            out[:, indices] = structure.within(np.ascontiguousarray(A[:, indices]), places[:, indices])
        return out

    def places(self, A):
        return self.each(A, lambda structure, B: structure.places(B)).astype(bool)

    def limits(self, rank):
        return [
            (axis, [indices[j] for j in some], count)
            for indices, structure in self.parts
            for axis, some, count in structure.limits(len(indices))
        ]

    def fewest(self, shape):
        """Items need what the groups of components need together."""
        components = np.zeros(shape[1])
        needs = [(indices, structure.fewest((shape[0], len(indices)))) for indices, structure in self.parts]
        for indices, (_, its_components) in needs:
            components[list(indices)] = its_components
        return sum(items for _, (items, _) in needs), components

    def violation(self, A):
        return max(s.violation(np.ascontiguousarray(A[:, indices])) for indices, s in self.parts)

    def face(self, A):
        faces = [structure.face(A[:, indices]) for indices, structure in self.parts]
        if any(face is None for face in faces) or len({(face.l1, face.l2) for face in faces}) > 1:
            return None
        lower, upper = np.empty(A.shape), np.empty(A.shape)
        for (indices, _), face in zip(self.parts, faces, strict=True):
            lower[:, indices], upper[:, indices] = face.lower, face.upper
        return Elementwise(lower, upper, faces[0].l1, faces[0].l2)

    def __repr__(self):
        return f"Columns({{{', '.join(f'{list(indices)}: {s}' for indices, s in self.parts)}}})"
