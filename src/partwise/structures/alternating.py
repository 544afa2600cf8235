"""Intersections without a closed form: alternating projections, with Dykstra's corrections where sets are convex."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from .base import Structure, beyond_rounding
from .places import best_places, exchanged_places, regular_places
from .sparse import EqualNonzeros
from .traits import combines
from .vectors import SLACK

ROUNDS = 200  # of projections onto each of the sets
FEW = 10  # rounds, after which the support is chosen
NOISE, LOUDER = 1e-2, 4  # relative to the largest entry, added where projections cycle; grows by this factor
LEAP = 8  # rounds, after which a geometric series of steps is summed at once
ATTEMPTS = 4  # to set entries to 0 that vanish too slowly
VANISHING = 0.05  # relative to the largest entry
MANY = 64  # steps taken at once, where they do not shrink
PATIENCE = 40  # rounds, in which the distance between sets has to fall by a share of 1 / PATIENCE
NUDGE = 1e-6  # the weight of given entries beside those of a projection, which breaks ties
CLOSE = 1e-10  # relative change in a round at which Dykstra's method ends


@combines("intersection", lambda structure: structure.members)
@dataclass(frozen=True, eq=False, repr=False)
class AlternatingProjections(Structure):
    """The intersection of bound structures, without a closed form for all of them."""

    members: tuple[Structure, ...]
    exact = False

    def scalable(self, rank):
        return np.all([member.scalable(rank) for member in self.members], axis=0)

    def bind(self, shape, transposed, name):
        return self

    def check(self, shape, name):
        for member in self.members:
            member.check(shape, name)
        self.check_sums(shape, name)
        self.check_room(shape, name)

    def check_sums(self, shape, name):
        """Raise an error if two sets fix different sums over the whole factor."""
        for one, other in combinations(self.members, 2):
            first, second = one.sums(shape), other.sums(shape)
            for what in first.keys() & second.keys():
                if abs(first[what] - second[what]) > SLACK * first[what]:
                    raise ValueError(
                        f"no value of {name} satisfies {self}: with {shape[0]} items and {shape[1]} components its "
                        f"{what} add up to {first[what]:.6g} by {one} and to {second[what]:.6g} by {other}"
                    )

    def check_room(self, shape, name):
        """Raise an error if some sets allow fewer nonzeros in all than others need."""
        n, rank = shape
        most = [n, rank]  # in a component, in an item
        for axis, some, count in self.limits(rank):
            if len(some) == rank:
                most[axis] = min(most[axis], count)
        for axis, needed in enumerate(self.fewest(shape)):
            vectors, others = ("items", "components") if axis == 0 else ("components", "items")
            need, room = np.sum(np.broadcast_to(needed, shape[axis])), most[axis] * shape[1 - axis]
            if need > room:
                raise ValueError(
                    f"no value of {name} satisfies {self} without {vectors} that are zero: its {shape[axis]} {vectors} "
                    f"need {need:g} nonzeros in all, and its {shape[1 - axis]} {others} may have {room}. Allow more "
                    "nonzeros, or ask for sparser vectors"
                )

    def rescaled(self, exponent, objective_exponent):
        return self.altered(members=tuple(m.rescaled(exponent, objective_exponent) for m in self.members))

    def value(self, A):
        return sum(member.value(A) for member in self.members)

    def row_values(self, A):
        return sum(member.row_values(A) for member in self.members)

    def settle(self, A):
        return self.within(A, np.ones(A.shape, dtype=bool))

    def within(self, A, places):
        """Rounds until all sets agree; the last projection, onto norms or the user's own set, is met exactly. Where
        some sets limit nonzeros, a few rounds show which support to take, and the others keep it."""
        near = self.rounds(self.prox(A, 0.0), places, FEW)
        for choice in (self.chosen_places, self.regular_places):
            chosen = choice(A, near, places) if self.violation(near) > 0 else None
            if chosen is not None:
                near = min(near, *self.attempts(A, near, chosen), key=self.violation)
        return self.without_dust(near, np.max(np.abs(A), initial=0))

    def attempts(self, A, near, places):
        """Points that are 0 outside the places; each one also where entries of the one before were vanishing slowly."""
        start = near if places.all() else np.where(places, A, A.dtype.type(0))
        for _ in range(ATTEMPTS):
            held = self.rounds(start, places, ROUNDS)
            yield held
            size = VANISHING * np.max(np.abs(held), initial=0)
            if not 0 < self.violation(held) < size:
                break  # feasible, or far from it
            start, places = held, places & (np.abs(held) > size)

    def rounds(self, A, places, most):
        """So many rounds of projections at most, among points that are 0 outside the places."""
        anywhere, rng, noise = bool(places.all()), np.random.default_rng(0), NOISE
        step, far = np.zeros_like(A), np.inf
        for turn in range(most):
            before, moved, last = A, 0.0, step
            for member in self.members:
                following = member.settle(A) if anywhere else member.within(A, places)
                moved = max(moved, np.max(np.abs(following - A), initial=0))
                A = following
            look = turn % PATIENCE == PATIENCE - 2  # before a leap
            if not beyond_rounding(2 * moved, A) or (look and moved > far * (1 - 1 / PATIENCE)):
                break  # all sets agree, or they come no closer to each other
            far, step, size = (moved if look else far), A - before, np.max(np.abs(A), initial=0)
            if turn == most - 1:
                break
            if np.max(np.abs(step), initial=0) <= np.finfo(A.dtype).eps * size:  # a cycle
                A = np.where(places, A + (noise * size * rng.uniform(-1, 1, size=A.shape)).astype(A.dtype), A)
                noise *= LOUDER
            elif turn % LEAP == LEAP - 1:
                A = A + leap(step, last)
        return A

    def chosen_places(self, A, near, places):
        """A support near those of A and `near` that has few enough nonzeros for some sets and enough for others."""
        scores = np.abs(near.astype(np.float64)) + NUDGE * np.abs(A) + np.finfo(A.dtype).tiny
        chosen, wanted = places, (np.where(places, scores, -np.inf), self.limits(A.shape[1]), self.fewest(A.shape))
        for member in self.members:  # each takes the largest of what the ones before leave
            chosen = chosen & member.places(np.where(chosen, scores, 0))
        best = exchanged_places(chosen, *wanted)
        best = best_places(*wanted) if best is None else best
        return chosen if best is None else best

    def regular_places(self, A, near, places):
        """For equal nonzeros: k places or none in each vector, and equally many in each of those across."""
        scores = np.where(places, np.abs(near.astype(np.float64)), -np.inf)
        equal = [member for member in self.members if isinstance(member, EqualNonzeros)]
        return regular_places(scores, equal[0].axis, equal[0].k) if len(equal) == 1 else None

    def places(self, A):
        return np.all([member.places(A) for member in self.members], axis=0)

    def limits(self, rank):
        return [limit for member in self.members for limit in member.limits(rank)]

    def fewest(self, shape):
        items, components = zip(*(member.fewest(shape) for member in self.members), strict=True)
        return max(items), reduce(np.maximum, components)

    def without_dust(self, A, size):
        """A with 0 for entries that are rounding errors, where that is feasible: the other factor could magnify them.
        All of A becomes 0 if it is rounding beside the given size."""
        eps, largest = np.finfo(A.dtype).eps, np.max(np.abs(A), initial=0)
        clean = np.where(np.abs(A) <= eps * (largest if largest > eps * size else size), A.dtype.type(0), A)
        return clean if self.violation(clean) <= self.violation(A) else A

    def violation(self, A):
        """Bounds, too, are met only up to rounding where another set is projected onto last."""
        return max(max(beyond_rounding(member.violation(A), A), member.surplus(A)) for member in self.members)

    def __repr__(self):
        return " & ".join(map(repr, self.members))


def leap(step: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The sum of the steps to come if each shrinks as the last two did; `MANY` of them where they do not shrink."""
    size = np.max(np.abs(last)) or 1.0  # squares could be no numbers
    one, other = (B.astype(np.float64) / size for B in (step, last))
    share = float(np.vdot(one, other)) / (float(np.vdot(other, other)) or 1.0)
    return step * step.dtype.type(MANY if share >= 1 else max(share, 0) / (1 - share))


class Dykstra(AlternatingProjections):
    """Convex sets and penalties: `prox` of the sum by Dykstra's method, whose corrections lead to the nearest point
    (Boyle and Dykstra 1986; for penalties Bauschke and Combettes 2008)."""

    def prox(self, A, step):
        point = A.astype(np.float64)
        corrections = [np.zeros_like(point) for _ in self.members]
        for _ in range(ROUNDS):
            change = 0.0  # of the corrections: the point itself may rest for many rounds, and then go on
            for k, member in enumerate(self.members):
                target = point + corrections[k]
                point = member.prox(target, step)
                change = max(change, np.max(np.abs(target - point - corrections[k]), initial=0))
                corrections[k] = target - point
            if change <= CLOSE * np.max(np.abs(point), initial=0):
                break
        return point.astype(A.dtype)


class Successive(AlternatingProjections):
    """Sets of which some are not convex: `prox` is one round of projections, an approximation."""

    def prox(self, A, step):
        return reduce(lambda B, member: member.prox(B, step), self.members, A)
