"""What structures share that combine their own constraint with bounds and penalties of entries."""

from __future__ import annotations

from .base import Structure
from .elementwise import FREE, Elementwise
from .traits import combines


@combines("entries", lambda structure: [structure.entries])
class WithEntrywise(Structure):
    """A structure together with `entries`, the bounds and penalties of each entry by itself."""

    entries: Elementwise = FREE

    def scalable(self, rank):
        """Where the bounds allow it, if the structure itself does."""
        free = self.altered(entries=FREE).scale_free
        return self.entries.scalable(rank) & free

    def takes(self, entries: Elementwise) -> bool:
        """Whether the closed form holds with these bounds and penalties."""
        return entries.plain

    @classmethod
    def together(cls, entries, parts):
        if len(parts) == 1 and isinstance(parts[0], cls) and parts[0].takes(entries):
            return parts[0].altered(entries=entries)
        return None

    def bind(self, shape, transposed, name):
        return self.altered(entries=self.entries.bind(shape, transposed, name))

    def rescaled(self, exponent, objective_exponent):
        return self.altered(entries=self.entries.rescaled(exponent, objective_exponent))

    def value(self, A):
        return self.entries.value(A)

    def own_terms(self) -> list[str]:
        """How messages state it, without its entries."""
        return []

    def __repr__(self):
        return " & ".join([*([] if self.entries.free else [repr(self.entries)]), *self.own_terms()]) or "Free()"
