"""Which rank: from held-out losses a window, and in it the most parts that come again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MANY = 30  # ranks: beyond, they are doubled first
WINDOW, NEAR = 0.05, 0.01  # of the drop of the held-out loss from one part to the best: the window, and as good as best
STABLE = 0.8  # silhouette of the weakest part of a rank whose parts come again
MOST_RANKS = 8  # of the window whose stability is looked at


@dataclass(frozen=True)
class Window:
    """Ranks that predict about as well as the best, of those tried."""

    ranks: tuple[int, ...]  # from the fewest within 5% of the drop to the best
    near: int  # the fewest within 1% of it

    @property
    def best(self) -> int:
        return self.ranks[-1]

    @classmethod
    def of(cls, curve: Mapping[int, float]) -> Window:
        """`curve`: the mean held-out loss by rank, that of rank 1 among them."""
        best = min(sorted(curve), key=lambda rank: curve[rank])
        drop = curve[1] - curve[best]

        def fewest(share: float) -> int:
            return min(rank for rank in curve if curve[rank] - curve[best] <= share * drop)

        low = fewest(WINDOW)
        return cls(tuple(rank for rank in sorted(curve) if low <= rank <= best), fewest(NEAR))

    @property
    def examined(self) -> tuple[int, ...]:
        """The ranks whose stability is looked at: all, or so many spread evenly, with the ends; one part is stable."""
        ranks = [rank for rank in self.ranks if rank > 1]
        if len(ranks) <= MOST_RANKS:
            return tuple(ranks)
        return tuple(ranks[round(i * (len(ranks) - 1) / (MOST_RANKS - 1))] for i in range(MOST_RANKS))

    def pick(self, weakest: Mapping[int, float]) -> int:
        """The most parts that come again, given the silhouette of the weakest part by rank; if none do, the fewest that
        predict as well as the best."""
        stable = [rank for rank, silhouette in weakest.items() if silhouette >= STABLE]
        return max(stable, default=self.near)


def ranks_in_turn(candidates: Sequence[int], patience: int, curve: Mapping[int, float]) -> Iterator[int]:
    """The next rank to try; `curve` has the losses of those tried by then.

    Upwards, until `patience` in a row are no better than the best before them. More than 30 candidates are doubled
    first, and halved between the neighbours of the best of these.
    """
    steps = candidates if len(candidates) <= MANY else doubled(candidates)
    waited = 0
    for rank in steps:
        best = min(curve.values(), default=float("inf"))
        if rank not in curve:
            yield rank
        waited = 0 if curve[rank] < best else waited + 1
        if waited >= patience and rank > 1:
            break
    if len(candidates) > MANY:
        yield from halved(candidates, curve)


def doubled(candidates: Sequence[int]) -> list[int]:
    """Every candidate next above a power of 2."""
    found, least = [], 1
    for rank in candidates:
        if rank >= least:
            found.append(rank)
            least = 2 * max(rank, 1)
    return found if found[-1] == candidates[-1] else [*found, candidates[-1]]


def halved(candidates: Sequence[int], curve: Mapping[int, float]) -> Iterator[int]:
    """Candidates half way from the best of those tried to its neighbours among them, until there are none."""
    while True:
        tried = [i for i, rank in enumerate(candidates) if rank in curve]
        at = min(range(len(tried)), key=lambda i: curve[candidates[tried[i]]])
        near = [tried[i] for i in (at - 1, at + 1) if 0 <= i < len(tried)]
        between = sorted({(tried[at] + other) // 2 for other in near} - set(tried))
        if not between:
            return
        for index in between:
            yield candidates[index]
