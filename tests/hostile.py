"""What somebody could put into a file in place of what belongs there."""

import numpy as np


def leaves(tree, place=()):
    """Where numbers, arrays and objects are in a JSON tree."""
    yield place
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, item in items:
        if name not in ("object", "array"):  # names, which have tests of their own
            yield from leaves(item, (*place, name))


def replaced(tree, place, value):
    """The same tree with another value in one place."""
    if not place:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[place[0]] = replaced(tree[place[0]], place[1:], value)
    return copy


NONSENSE = [
    {"number": "nan"},
    {"number": "inf"},
    -1,
    -1e300,
    1e300,
    10**30,
    0,
    True,
    None,
    "x",
    {"list": []},
    {"tuple": [0, 0]},
]
SPOILED = [
    lambda A: A[:1].copy(),
    lambda A: np.zeros((1, 1)),
    lambda A: np.zeros((*A.shape, 1)),
    lambda A: np.full(A.shape, np.nan),
    lambda A: -1 - np.abs(A.astype(float)),
    lambda A: A.astype(np.float32 if A.dtype == np.float64 else np.float64),
    lambda A: np.ones(A.shape, bool),
    np.asfortranarray,
    lambda A: np.full(A.shape, 1e300),
]


def hostile(tree, arrays, share=1):
    """One thing after the other in a file replaced by what does not belong there; one in `share` of all of these."""
    rng = np.random.default_rng(0)
    changes = [(place, value) for place in leaves(tree) for value in NONSENSE]
    yield from ((replaced(tree, *change), arrays) for change in changes if not rng.integers(share))
    spoiled = [(name, spoil) for name in arrays for spoil in SPOILED]
    yield from ((tree, arrays | {name: spoil(arrays[name])}) for name, spoil in spoiled if not rng.integers(share))
