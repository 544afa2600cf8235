"""Structures made of structures: all of them at once, or others for some components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from numbers import Integral

import numpy as np

from .base import Structure, beyond_rounding
from .elementwise import FREE, Elementwise, NonNegative
from .entries import OverEntries
from .orthogonal import Tied
from .places import best_places, exchanged_places, regular_places
from .shape import Monotone, Smooth
from .sparse import EqualNonzeros
from .vectors import PER, SLACK, Vectors

ROUNDS = 200  # of projections onto one set after the other
FEW = 10  # of them, until it is clear where nonzeros should be
NOISE, LOUDER = 1e-2, 4  # of the largest entry, where projections go round in circles, and each time by this factor
LEAP = 8  # rounds, after which steps that shrink by the same factor are added up
ATTEMPTS = 4  # to let entries go that vanish too slowly
VANISHING = 0.05  # of the largest entry
MANY = 64  # steps that grow, at once
PATIENCE = 40  # rounds in which sets have to come nearer to each other, by this share
NUDGE = 1e-6  # what the given entries count beside those of a projection
CLOSE = 1e-10  # relative change in a round that ends them


@dataclass(frozen=True, eq=False, repr=False)
class All(Structure):
    """All of `parts` at once, written `a & b`: sets are intersected, penalties added.

    Binding it looks up one closed form of the whole: see `combined`.
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

    @property
    def outlined(self) -> Structure:
        """What binding will make of it, as far as that can be said without a shape."""
        return combined([outline(part) for part in self.parts], repr(self))

    @property
    def exact(self):
        return self.outlined.exact

    @property
    def convex(self):
        return self.outlined.convex

    @property
    def nonnegative(self):
        return self.outlined.nonnegative

    def bind(self, shape, transposed, name):
        whole = combined([part.bind(shape, transposed, name) for part in self.parts], f"{name} satisfies {self}")
        whole.check(shape, name)
        return whole

    def _unbound(self, *_):
        raise TypeError(f"{self} has no shape yet: bind it to a factor first")

    rescaled = value = prox = violation = gains = _unbound

    def __repr__(self):
        return " & ".join(map(repr, self.parts))


def outline(part: Structure) -> Structure:
    """A stated part with arrays of bounds made small, so that parts can be combined before their shape is known."""
    if not isinstance(part, Elementwise):
        return part
    lower, upper = (
        b if np.ndim(b) == 0 else np.full((1, 1), end(b)) for b, end in ((part.lower, np.min), (part.upper, np.max))
    )
    return Elementwise(lower, upper, part.l1, part.l2, part.binary)


def combined(parts: list[Structure], what: str) -> Structure:
    """All parts as one structure: by a closed form of the whole set where one is known, else by projections onto one
    set after the other."""
    parts = without_repeats([piece for part in parts for piece in pieces(part)], what)
    entries = merged([part for part in parts if isinstance(part, Elementwise)], what)
    others = [part for part in parts if not isinstance(part, Elementwise)]
    if not others:
        return entries
    if whole := closed_form(entries, others):
        return whole
    return in_turns(entries, others)


def pieces(part: Structure) -> list[Structure]:
    """A part that is a combination already, with what holds of its entries apart."""
    if isinstance(part, OverEntries) and not part.entries.free:
        return [part.entries, part.altered(entries=FREE)]
    return [part]


def without_repeats(parts: list[Structure], what: str) -> list[Structure]:
    """What is said twice of the same vectors, once; an error if it is not the same."""
    rules = [part for part in parts if isinstance(part, Vectors) and part.core]
    for one, other in combinations(rules, 2):
        if type(one) is type(other) and one.per == other.per and one.own_terms()[-1] != other.own_terms()[-1]:
            raise ValueError(
                f"no value of {what}: {one} and {other} speak of the same {one.per}s. State one of them; GroupSparsity "
                "takes all groups at once, in groups= or labels="
            )
    repeated = [other for one, other in combinations(rules, 2) if repr(one) == repr(other)]
    return [part for part in parts if not any(part is other for other in repeated)]


def closed_form(entries: Elementwise, others: list[Structure]) -> Structure | None:
    """The whole set with its exact projection, or None. Each family looks at all parts, not at pairs."""
    if len(others) == 1 and entries.free:
        return others[0]
    forms = (family.together(entries, others) for family in (Vectors, Tied, Monotone, Smooth, Columns))
    return next((form for form in forms if form is not None), None)


def in_turns(entries: Elementwise, others: list[Structure]) -> Structure:
    """Dykstra's method where all sets are convex, else one after the other: entries, then how many, then norms. What is
    nonnegative for one is so for all, if that is all that they take of the bounds."""
    others = by_vectors(others)
    sign = NonNegative() if entries.nonnegative or any(part.nonnegative for part in others) else FREE
    bounded = [None if entries.free else closed_form(entries.bounds(), [part]) for part in others]
    signed = [part if part.nonnegative else closed_form(sign, [part]) for part in others]
    members = [whole or with_sign or part for whole, with_sign, part in zip(bounded, signed, others)]
    if not entries.free and (entries.l1 or entries.l2 or None in bounded):
        members = [entries, *members]
    members.sort(key=lambda member: member.stage)
    return (Dykstra if all(member.convex for member in members) else Successive)(tuple(members))


def by_vectors(parts: list[Structure]) -> list[Structure]:
    """What is said of the same vectors as one structure, where it has a closed form."""
    for per in PER:
        same = [part for part in parts if isinstance(part, Vectors) and part.per == per]
        whole = Vectors.together(FREE, list(same)) if len(same) > 1 else None
        if whole is not None:
            parts = [whole if part is same[0] else part for part in parts if part not in same[1:]]
    return parts


def merged(parts: list[Elementwise], what: str) -> Elementwise:
    """The tighter bounds, the sums of the weights."""
    if not parts:
        return FREE
    lower, upper = (
        reduce(end, [getattr(part, name) for part in parts])
        for name, end in (("lower", np.maximum), ("upper", np.minimum))
    )
    if binary := any(part.binary for part in parts):
        lower, upper = np.ceil(lower), np.floor(upper)
    if np.any(lower > upper):
        raise ValueError(f"no value of {what}: its bounds exclude each other somewhere")
    return Elementwise(lower, upper, sum(p.l1 for p in parts), sum(p.l2 for p in parts), binary)


@dataclass(frozen=True, eq=False, repr=False)
class Turns(Structure):
    """Several bound structures at once, without a closed form for all of them."""

    members: tuple[Structure, ...]
    exact = False

    @property
    def nonnegative(self):
        return any(member.nonnegative for member in self.members)

    @property
    def scale_free(self):
        return all(member.scale_free for member in self.members)

    @property
    def fixes_scale(self):
        return any(member.fixes_scale for member in self.members)

    def scalable(self, rank):
        return np.all([member.scalable(rank) for member in self.members], axis=0)

    @property
    def cone(self):
        return all(member.cone for member in self.members)

    @property
    def interchangeable(self):
        return all(member.interchangeable for member in self.members)

    @property
    def replaceable(self):
        return all(member.replaceable for member in self.members)

    @property
    def magnitudes(self):
        least, most = zip(*(member.magnitudes for member in self.members))
        return max(least), min(most)

    @property
    def apart(self):
        return all(member.apart for member in self.members)

    def bind(self, shape, transposed, name):
        return self

    def check(self, shape, name):
        for member in self.members:
            member.check(shape, name)
        self.check_sums(shape, name)
        self.check_room(shape, name)

    def check_sums(self, shape, name):
        """An error if two sets ask for different sums over the whole factor."""
        for one, other in combinations(self.members, 2):
            first, second = one.sums(shape), other.sums(shape)
            for what in first.keys() & second.keys():
                if abs(first[what] - second[what]) > SLACK * first[what]:
                    raise ValueError(
                        f"no value of {name} satisfies {self}: with {shape[0]} items and {shape[1]} components its "
                        f"{what} add up to {first[what]:.6g} by {one} and to {second[what]:.6g} by {other}"
                    )

    def check_room(self, shape, name):
        """An error if some sets allow fewer nonzeros in all than others need."""
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
        """Rounds until all sets agree; the last one, of norms or of the user, has the last word. Where some of them say
        how many nonzeros there may be, a few rounds show where these should be; there they stay, and the sets come
        together among points with zeros elsewhere."""
        near = self.rounds(self.prox(A, 0.0), places, FEW)
        for choice in (self.chosen_places, self.regular_places):
            chosen = choice(A, near, places) if self.violation(near) > 0 else None
            if chosen is not None:
                near = min(near, *self.attempts(A, near, chosen), key=self.violation)
        return self.without_dust(near, np.max(np.abs(A), initial=0))

    def attempts(self, A, near, places):
        """Points with zeros outside the places, and outside those of them where entries vanish, but slowly."""
        start = near if places.all() else np.where(places, A, A.dtype.type(0))
        for _ in range(ATTEMPTS):
            held = self.rounds(start, places, ROUNDS)
            yield held
            size = VANISHING * np.max(np.abs(held), initial=0)
            if not 0 < self.violation(held) < size:
                break  # there, or far from it
            start, places = held, places & (np.abs(held) > size)

    def rounds(self, A, places, most):
        """Projections onto one set after the other, among points that are 0 outside the places."""
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
                break  # all agree, or they come no nearer to each other
            far, step, size = (moved if look else far), A - before, np.max(np.abs(A), initial=0)
            if turn == most - 1:
                break
            if np.max(np.abs(step), initial=0) <= np.finfo(A.dtype).eps * size:  # they go round in circles
                A = np.where(places, A + (noise * size * rng.uniform(-1, 1, size=A.shape)).astype(A.dtype), A)
                noise *= LOUDER
            elif turn % LEAP == LEAP - 1:
                A = A + leap(step, last)
        return A

    def chosen_places(self, A, near, places):
        """Where a point near these two may be nonzero, so that there are few enough for some sets and enough for
        others."""
        scores = np.abs(near.astype(np.float64)) + NUDGE * np.abs(A) + np.finfo(A.dtype).tiny
        chosen, wanted = places, (np.where(places, scores, -np.inf), self.limits(A.shape[1]), self.fewest(A.shape))
        for member in self.members:  # each takes the largest of what the ones before leave
            chosen = chosen & member.places(np.where(chosen, scores, 0))
        best = exchanged_places(chosen, *wanted)
        best = best_places(*wanted) if best is None else best
        return chosen if best is None else best

    def regular_places(self, A, near, places):
        """For nonzeros that are equal: the same number of places in each vector, and in each of those across."""
        scores = np.where(places, np.abs(near.astype(np.float64)), -np.inf)
        equal = [member for member in self.members if isinstance(member, EqualNonzeros)]
        return regular_places(scores, equal[0].axis, equal[0].k) if len(equal) == 1 else None

    def places(self, A):
        return np.all([member.places(A) for member in self.members], axis=0)

    def limits(self, rank):
        return [limit for member in self.members for limit in member.limits(rank)]

    def fewest(self, shape):
        items, components = zip(*(member.fewest(shape) for member in self.members))
        return max(items), reduce(np.maximum, components)

    def without_dust(self, A, size):
        """A with 0 for entries that are rounding, where that is in the set: the other factor could blow them up. And 0
        for all of A, if it is rounding beside the given size."""
        eps, largest = np.finfo(A.dtype).eps, np.max(np.abs(A), initial=0)
        clean = np.where(np.abs(A) <= eps * (largest if largest > eps * size else size), A.dtype.type(0), A)
        return clean if self.violation(clean) <= self.violation(A) else A

    def violation(self, A):
        """Bounds, too, are met to rounding where another set has the last word."""
        return max(max(beyond_rounding(member.violation(A), A), member.surplus(A)) for member in self.members)

    def __repr__(self):
        return " & ".join(map(repr, self.members))


def leap(step: np.ndarray, last: np.ndarray) -> np.ndarray:
    """What is left of steps that shrink by the same factor each, as the last two do; many, where they do not shrink."""
    size = np.max(np.abs(last)) or 1.0  # squares could be no numbers
    one, other = (B.astype(np.float64) / size for B in (step, last))
    share = float(np.vdot(one, other)) / (float(np.vdot(other, other)) or 1.0)
    return step * step.dtype.type(MANY if share >= 1 else max(share, 0) / (1 - share))


class Dykstra(Turns):
    """Convex sets and penalties: `prox` of the sum by Dykstra's method, with corrections that lead to the nearest point
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


class Successive(Turns):
    """Sets of which some are not convex: one round of projections, an approximation."""

    convex = False

    def prox(self, A, step):
        return reduce(lambda B, member: member.prox(B, step), self.members, A)


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Structure):
    """Another structure for some components: `Columns({16: Sparse(17, per="component")})`. The others are free, but
    for what the structures that it is combined with say."""

    parts: tuple[tuple[tuple[int, ...], Structure], ...]
    interchangeable = False

    def __init__(self, parts):
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

    @property
    def structures(self):
        return [structure for _, structure in self.parts]

    @classmethod
    def together(cls, entries: Elementwise, parts: list[Structure]) -> Structure | None:
        """What is said of every component is said of these too."""
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

    @property
    def fixed(self):
        return all(structure.fixed for structure in self.structures)

    @property
    def nonnegative(self):
        return all(structure.nonnegative for structure in self.structures)

    @property
    def scale_free(self):
        return all(structure.scale_free for structure in self.structures)

    @property
    def fixes_scale(self):
        return all(structure.fixes_scale for structure in self.structures)

    def scalable(self, rank):
        found = np.zeros(rank, dtype=bool)
        for indices, structure in self.parts:
            found[list(indices)] = structure.scalable(len(indices))
        return found

    @property
    def cone(self):
        return all(structure.cone for structure in self.structures)

    @property
    def rowwise(self):
        return all(structure.rowwise for structure in self.structures)

    @property
    def apart(self):
        return all(structure.apart for structure in self.structures)

    @property
    def convex(self):
        return all(structure.convex for structure in self.structures)

    @property
    def exact(self):
        return all(structure.exact for structure in self.structures)

    @property
    def magnitudes(self):
        least, most = zip(*(structure.magnitudes for structure in self.structures))
        return max(least), max(most)

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
        """What its parts need in each item, for all together."""
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
        for (indices, _), face in zip(self.parts, faces):
            lower[:, indices], upper[:, indices] = face.lower, face.upper
        return Elementwise(lower, upper, faces[0].l1, faces[0].l2)

    def __repr__(self):
        return f"Columns({{{', '.join(f'{list(indices)}: {s}' for indices, s in self.parts)}}})"
