"""Which rank: from held-out losses a window, and in it the most parts that come again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

STEP = 1.2  # from one rank to the next, whole numbers: 1 to 10, 12, 14, 16, 19, 22, 26, 31, ...
WINDOW, NEAR = 0.05, 0.01  # of the drop of the held-out loss from one part to the best: the window, and as good as best
STABLE = 0.8  # silhouette of the weakest part of a rank whose parts come again
MOST_RANKS = 5  # of the window whose stability is looked at


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
        """`curve`: the mean held-out loss by rank; the drop is from that of the lowest."""
        best = min(sorted(curve), key=lambda rank: curve[rank])
        drop = curve[min(curve)] - curve[best]

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

    @staticmethod
    def is_stable(weakest: float) -> bool:
        return weakest >= STABLE

    def pick(self, weakest: Mapping[int, float]) -> int:
        """The most parts that come again, given the silhouette of the weakest part by rank; if none do, the fewest that
        predict as well as the best."""
        stable = [rank for rank, silhouette in weakest.items() if self.is_stable(silhouette)]
        return max(stable, default=self.near)


def ranks_in_turn(
    candidates: Sequence[int],
    patience: int,
    curve: Mapping[int, float],
    unclear: Callable[[int], bool] = lambda _: False,
) -> Iterator[int]:
    """The next rank to try; `curve` has the losses of those tried by then, and `unclear` tells whether that of a rank
    is within noise of the lowest: such a one counts half.

    Upwards, in steps of a fifth from 10 parts on, until `patience` in a row are no better than the best before them;
    then halfway between the best and its neighbours, until there is nothing between them, unless the best is the last.
    """
    waited = 0.0
    for rank in growing(candidates):
        best = min(curve.values(), default=math.inf)
        yield rank
        waited = 0.0 if curve[rank] < best else waited + (0.5 if unclear(rank) else 1.0)
        if waited >= patience:
            break
    if min(curve, key=lambda rank: curve[rank]) != candidates[-1]:
        yield from halved(candidates, curve)


def growing(candidates: Sequence[int]) -> Iterator[int]:
    """Candidates, each the first that is larger than the one before it by a fifth of that, and the last."""
    least = 1
    for rank in candidates:
        if rank >= least or rank == candidates[-1]:
            yield rank
            least = max(rank + 1, int(rank * STEP))


def halved(candidates: Sequence[int], curve: Mapping[int, float]) -> Iterator[int]:
    """Candidates halfway from the best of those tried to its neighbours among them, until there are none."""
    while True:
        tried = [i for i, rank in enumerate(candidates) if rank in curve]
        at = min(range(len(tried)), key=lambda i: curve[candidates[tried[i]]])
        near = [tried[i] for i in (at - 1, at + 1) if 0 <= i < len(tried)]
        between = sorted({(tried[at] + other) // 2 for other in near} - set(tried))
        if not between:
            return
        yield from (candidates[index] for index in between)
