"""Some of many combinations, in which all that should meet does: `make test` takes these, `make test-all` the rest."""

from collections import Counter
from itertools import combinations

import pytest


def covering(cases):
    """Names of cases that show together what all of them show; a case is a name with the set of what it shows. The one
    that adds most comes first, of equal ones the one that shows what was seen least."""
    left, seen, taken = dict(cases), Counter(), set()

    def gain(name):
        return sum(not seen[aspect] for aspect in left[name]), -sum(seen[aspect] for aspect in left[name])

    while left and gain(best := max(left, key=gain))[0]:
        seen.update(left.pop(best))
        taken.add(best)
    return taken


def together(count):
    """What a case of some name shows where up to `count` values of any parameters should meet."""

    def shown(name, /, **values):
        named = [(parameter, id(value)) for parameter, value in values.items()]
        return {several for n in range(1, count + 1) for several in combinations(named, n)}

    return shown


EACH, PAIRS, TRIPLES = (pytest.mark.covering(shown=together(count)) for count in (1, 2, 3))  # of values, in some case


def seeds(count, quick=10):
    """Values of a parameter: all but the first ones for `make test-all`."""
    return [pytest.param(seed, marks=() if seed < quick else pytest.mark.slow) for seed in range(count)]
