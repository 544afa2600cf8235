"""Data to try things on, generated here or carried by scikit-learn.

>>> import partwise as pw
>>> planted = pw.datasets.make_parts(20, 12, 3, random_state=0)
>>> planted.X.shape, planted.W.shape, planted.H.shape
((20, 12), (20, 3), (3, 12))
"""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .data.names import letters
from .data.tensor import SparseTensor
from .data.validation import checked_random_state

__all__ = [
    "Contacts",
    "Parts",
    "Planted",
    "load_digits",
    "make_binary_parts",
    "make_contacts",
    "make_cp",
    "make_fluorescence",
    "make_parts",
    "make_sparse_codes",
    "make_swimmer",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def local_archive(name: str) -> Path | None:
    """A data set that cannot be passed on, such as "classic3": the file `classic3.npz` in the folder that the
    environment variable PARTWISE_DATA names, or in `shared/data` beside the repository; None where there is none."""
    folder = Path(os.environ.get("PARTWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = folder / f"{name}.npz"
    return path if path.is_file() else None


class Parts(NamedTuple):
    """Data with the parts it is made of: `X = W @ H` (plus noise where asked for).

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    W : ndarray of shape (n_samples, rank)
        The planted weights.
    H : ndarray of shape (rank, n_features)
        The planted parts.
    image_shape : tuple of int or None
        Height and width where rows are images.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> planted = pw.datasets.make_parts(20, 12, 3, random_state=0)
    >>> np.allclose(planted.X, planted.W @ planted.H)
    True
    """

    X: np.ndarray
    W: np.ndarray
    H: np.ndarray
    image_shape: tuple[int, int] | None


def make_swimmer() -> Parts:
    """The 256 Swimmer images (Donoho and Stodden 2003), 32 x 32: a torso and four limbs in four positions each.

    16 limbs of 5 pixels and a torso of 17; each image is the torso and one position of each limb. H holds the 17
    parts, the torso last, W the 0/1 choice.

    Returns
    -------
    Parts
        `X`, `W`, `H` and `image_shape`.

    Examples
    --------
    >>> import partwise as pw
    >>> swimmer = pw.datasets.make_swimmer()
    >>> swimmer.X.shape, swimmer.H.shape, swimmer.image_shape
    ((256, 1024), (17, 1024), (32, 32))
    """
    directions = {  # quadrant: the four ways a limb can point, as (row, column) steps
        (-1, -1): [(-1, 0), (-1, -1), (0, -1), (1, -1)],
        (-1, 1): [(-1, 0), (-1, 1), (0, 1), (1, 1)],
        (1, -1): [(1, 0), (1, -1), (0, -1), (-1, -1)],
        (1, 1): [(1, 0), (1, 1), (0, 1), (-1, 1)],
    }
    top, bottom, column = 7, 23, 16
    parts = []
    for (vertical, side), steps in directions.items():
        row = top + 1 if vertical < 0 else bottom - 1
        for step in steps:
            image = np.zeros((32, 32))
            for length in range(1, 6):
                image[row + length * step[0], column + side + length * step[1]] = 1
            parts.append(image.ravel())
    torso = np.zeros((32, 32))
    torso[top : bottom + 1, column] = 1
    H = np.array([*parts, torso.ravel()])
    W = np.array([[*np.eye(4)[list(pose)].ravel(), 1.0] for pose in product(range(4), repeat=4)])
    return Parts(W @ H, W, H, (32, 32))


def make_parts(
    n_samples: int = 100,
    n_features: int = 80,
    rank: int = 5,
    *,
    zeros: float = 0.5,
    noise: float = 0.0,
    outliers: float = 0.0,
    random_state: Any = None,
) -> Parts:
    """A planted factorization: uniform W and H with a share of `zeros`, normal noise of relative size `noise` on X, cut
    at 0, and a share of `outliers` among its entries, anything up to five times the largest.

    Parameters
    ----------
    n_samples, n_features, rank : int
        The shape of X, and the number of parts.
    zeros : float
        The share of zeros in W and H.
    noise : float
        The size of the noise, relative to X.
    outliers : float
        The share of entries that are wrong.
    random_state : int, RandomState, Generator or None
        The seed.

    Returns
    -------
    Parts
        `X`, `W`, `H` and `image_shape`.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_parts(60, 40, 4, noise=0.1, random_state=0)
    >>> planted.X.shape, planted.H.shape
    ((60, 40), (4, 40))
    """
    rng = checked_random_state(random_state)
    W, H = (
        rng.uniform(size=shape) * (rng.uniform(size=shape) >= zeros)
        for shape in ((n_samples, rank), (rank, n_features))
    )
    X = noisy(W @ H, noise, rng)
    if outliers:
        X = np.where(rng.uniform(size=X.shape) < outliers, 5 * X.max() * rng.uniform(size=X.shape), X)
    return Parts(X, W, H, None)


def make_binary_parts(
    n_samples: int = 100,
    n_features: int = 80,
    rank: int = 5,
    *,
    share: float = 0.1,
    flips: float = 0.0,
    random_state: Any = None,
) -> Parts:
    """0/1 parts that overlap a little: W and H with a `share` of ones, X their Boolean product, where a share of
    `flips` is wrong.

    Parameters
    ----------
    n_samples, n_features, rank : int
        The shape of X, and the number of parts.
    share : float
        The share of ones in W and H.
    flips : float
        The share of entries of X that are wrong.
    random_state : int, RandomState, Generator or None
        The seed.

    Returns
    -------
    Parts
        `X`, `W`, `H` and `image_shape`.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> planted = pw.datasets.make_binary_parts(60, 40, 4, flips=0.01, random_state=0)
    >>> np.unique(planted.X)
    array([0., 1.])
    """
    rng = checked_random_state(random_state)
    W, H = (rng.uniform(size=shape) < share for shape in ((n_samples, rank), (rank, n_features)))
    X = (W.astype(np.float64) @ H > 0) ^ (rng.uniform(size=(n_samples, n_features)) < flips)
    return Parts(X.astype(np.float64), W.astype(np.float64), H.astype(np.float64), None)


def make_sparse_codes(
    n_samples: int = 300,
    n_features: int = 20,
    rank: int = 30,
    *,
    nonzeros: int = 3,
    noise: float = 0.0,
    random_state: Any = None,
) -> Parts:
    """Sparse combinations of random atoms: H normal with rows of norm 1, W with `nonzeros` normal entries in each row,
    at random places, normal noise of relative size `noise` on X.

    Parameters
    ----------
    n_samples, n_features, rank : int
        The shape of X, and the number of parts.
    nonzeros : int
        Atoms in each sample.
    noise : float
        The size of the noise, relative to X.
    random_state : int, RandomState, Generator or None
        The seed.

    Returns
    -------
    Parts
        `X`, `W`, `H` and `image_shape`.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_sparse_codes(60, 10, 15, nonzeros=2, random_state=0)
    >>> planted.X.shape, set((planted.W != 0).sum(axis=1).tolist())
    ((60, 10), {2})
    """
    rng = checked_random_state(random_state)
    H = rng.standard_normal((rank, n_features))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    places = np.argsort(rng.uniform(size=(n_samples, rank)), axis=1)[:, :nonzeros]
    W = np.zeros((n_samples, rank))
    np.put_along_axis(W, places, rng.standard_normal(places.shape), axis=1)
    X = W @ H
    deviation = rng.standard_normal(X.shape)
    return Parts(X + noise * np.linalg.norm(X) / np.linalg.norm(deviation) * deviation, W, H, None)


class Planted(NamedTuple):
    """A tensor with the factors it is made of, tall, one for each mode (plus noise where asked for).

    Attributes
    ----------
    X : ndarray or SparseTensor
        The data.
    factors : tuple of ndarray
        The planted factors, tall.
    modes : dict or None
        Names and labels, as `factorize` takes them.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_cp((6, 5, 4), 2, random_state=0)
    >>> planted.X.shape, [A.shape for A in planted.factors]
    ((6, 5, 4), [(6, 2), (5, 2), (4, 2)])
    """

    X: np.ndarray | SparseTensor
    factors: tuple[np.ndarray, ...]
    modes: dict[str, np.ndarray | None] | None = None  # names and labels, as `factorize` takes them


def make_cp(
    shape: tuple[int, ...] = (30, 25, 20),
    rank: int = 5,
    *,
    zeros: float = 0.5,
    noise: float = 0.0,
    sparse: bool = False,
    random_state: Any = None,
) -> Planted:
    """A planted CP model of any order: uniform factors with a share of `zeros`, no column without a nonzero, and normal
    noise of relative size `noise` on X, cut at 0. `sparse`: X is a `SparseTensor`, of which only nonzeros have noise;
    never held in full, so it may be large where there are many zeros.

    Parameters
    ----------
    shape : tuple of int
        The size of each mode.
    rank : int
        The number of components.
    zeros : float
        The share of zeros in the factors.
    noise : float
        The size of the noise, relative to X.
    sparse : bool
        Whether X is a `SparseTensor`.
    random_state : int, RandomState, Generator or None
        The seed.

    Returns
    -------
    Planted
        `X` and `factors`.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_cp((60, 50, 40), 3, zeros=0.9, sparse=True, random_state=0)
    >>> type(planted.X).__name__, planted.X.shape
    ('SparseTensor', (60, 50, 40))
    """
    rng = checked_random_state(random_state)
    factors = tuple(rng.uniform(size=(n, rank)) * (rng.uniform(size=(n, rank)) >= zeros) for n in shape)
    for A in factors:
        empty = np.flatnonzero(~A.any(axis=0))
        A[rng.randint(len(A), size=empty.size), empty] = 1 - rng.uniform(size=empty.size)
    if sparse:
        boxes = [np.meshgrid(*(np.flatnonzero(A[:, k]) for A in factors), indexing="ij") for k in range(rank)]
        coords = np.unique(np.concatenate([np.stack(box, axis=-1).reshape(-1, len(shape)) for box in boxes]), axis=0)
        values = np.prod([A[coords[:, mode]] for mode, A in enumerate(factors)], axis=0).sum(axis=1)
        return Planted(SparseTensor(coords, noisy(values, noise, rng), tuple(shape)), factors)
    modes = letters(len(shape))
    X = np.einsum(",".join(f"{mode}z" for mode in modes) + "->" + modes, *factors, optimize=True)
    return Planted(noisy(X, noise, rng), factors)


def noisy(X: np.ndarray, noise: float, rng) -> np.ndarray:
    """X with normal noise of relative size `noise`, cut at 0."""
    if not noise:
        return X
    deviation = rng.standard_normal(X.shape)
    return np.maximum(X + noise * np.linalg.norm(X) / np.linalg.norm(deviation) * deviation, 0)


def make_fluorescence(
    n_samples: int = 5, n_analytes: int = 3, *, noise: float = 0.01, random_state: Any = None
) -> Planted:
    """Fluorescence of mixtures, samples x emission x excitation, like the amino acids of Bro (1997): each analyte glows
    with its own smooth spectrum, as much as there is of it and as the light that excites it is absorbed.

    The first samples hold one analyte each, the others are mixtures. Factors are the concentrations and the two kinds
    of spectra, which have a largest entry of 1; the wavelengths, in nm, are in `modes`.

    Parameters
    ----------
    n_samples, n_analytes : int
        How many there are.
    noise : float
        The size of the noise, relative to X.
    random_state : int, RandomState, Generator or None
        The seed.

    Returns
    -------
    Planted
        `X`, `factors` and `modes`.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_fluorescence(random_state=0)
    >>> planted.X.shape, list(planted.modes)
    ((5, 201, 61), ['sample', 'emission', 'excitation'])
    """
    rng = checked_random_state(random_state)
    emission, excitation = np.arange(250.0, 451), np.arange(240.0, 301)
    places = np.linspace(0, 1, n_analytes) if n_analytes > 1 else np.array([0.5])
    glow = band(emission, 282 + 68 * places**1.5, 12 + 16 * places)
    light = band(excitation, 256 + 24 * places, 7 + 5 * places) + 0.8 * band(excitation, 225 + 5 * places, 12)
    pure = np.eye(n_samples, n_analytes)
    mixed = rng.uniform(0.1, 1, size=(max(n_samples - n_analytes, 0), n_analytes))
    concentrations = np.concatenate([pure[:n_analytes], mixed])
    factors = concentrations, glow / glow.max(axis=0), light / light.max(axis=0)
    X = noisy(np.einsum("iz,jz,kz->ijk", *factors), noise, rng)
    return Planted(X, factors, {"sample": None, "emission": emission, "excitation": excitation})


def band(x: np.ndarray, centre: np.ndarray, width) -> np.ndarray:
    """One peak a column, steeper to the left of it than to the right."""
    away = x[:, None] - centre
    return np.exp(-0.5 * np.square(away / (width * np.where(away > 0, 1.5, 1))))


class Contacts(NamedTuple):
    """How often people met: counts at coordinates (person, person, time), each meeting from both sides.

    Attributes
    ----------
    coords : ndarray of shape (n, 3)
        Person, person and time of each count.
    values : ndarray of shape (n,)
        How often they met.
    shape : tuple of int
        Of the tensor.
    groups : ndarray of int
        The group of each person.
    schedule : ndarray of shape (n_times, n_groups)
        When the people of a group meet.

    Examples
    --------
    >>> import partwise as pw
    >>> contacts = pw.datasets.make_contacts(12, 3, 8, meetings=200, random_state=0)
    >>> contacts.X.shape, contacts.groups.tolist()
    ((12, 12, 8), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """

    coords: np.ndarray
    values: np.ndarray
    shape: tuple[int, ...]
    groups: np.ndarray  # of each person
    schedule: np.ndarray  # (time, group): when the people of a group meet

    @property
    def X(self) -> SparseTensor:
        return SparseTensor(self.coords, self.values, self.shape)


def make_contacts(
    n_people: int = 60,
    n_groups: int = 5,
    n_times: int = 40,
    *,
    meetings: int = 8000,
    mixing: float = 0.1,
    random_state: Any = None,
) -> Contacts:
    """Contacts in a school: people meet within their group, which has lessons of its own, and a share of `mixing` with
    anybody at any time. `meetings`: about how many there are in all. Counts are Poisson.

    Parameters
    ----------
    n_people, n_groups, n_times : int
        How many there are.
    meetings : int
        About how many meetings there are in all.
    mixing : float
        The share of meetings with anybody at any time.
    random_state : int, RandomState, Generator or None
        The seed.

    Returns
    -------
    Contacts
        `coords`, `values`, `shape`, `groups`, `schedule`, and `X`, a `SparseTensor`.

    Examples
    --------
    >>> import partwise as pw
    >>> contacts = pw.datasets.make_contacts(12, 3, 8, meetings=200, random_state=0)
    >>> type(contacts.X).__name__, contacts.schedule.shape
    ('SparseTensor', (8, 3))
    """
    rng = checked_random_state(random_state)
    groups = np.sort(np.arange(n_people) % n_groups)
    # each group is busy in about half of the lessons, which last four times
    lessons = rng.uniform(size=(-(-n_times // 4), n_groups)) < 0.5
    lessons[np.arange(n_groups) % len(lessons), np.arange(n_groups)] = True
    schedule = np.repeat(lessons, 4, axis=0)[:n_times] * rng.uniform(0.5, 1.5, size=(n_times, n_groups))
    sociable = rng.gamma(4.0, size=n_people)
    kinds = [(sociable * (groups == g), schedule[:, g], (1 - mixing) / n_groups) for g in range(n_groups)]
    events = []
    for weight, times, share in [*kinds, (sociable, np.ones(n_times), mixing)]:
        count = rng.poisson(meetings * share)
        drawn = [rng.choice(len(p), size=count, p=p / p.sum()) for p in (weight, weight, times)]
        events.append(np.stack(drawn, axis=1))
    met = np.concatenate(events)
    met = met[met[:, 0] != met[:, 1]]
    coords, values = np.unique(np.concatenate([met, met[:, [1, 0, 2]]]), axis=0, return_counts=True)
    return Contacts(coords, values.astype(np.float64), (n_people, n_people, n_times), groups, schedule)


def load_digits() -> Parts:
    """The 1797 handwritten digits, 8 x 8, that scikit-learn carries; W and H are empty, the parts are unknown.

    Returns
    -------
    Parts
        `X`, `W`, `H` and `image_shape`.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.datasets.load_digits().X.shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits as load  # noqa: PLC0415  # slow to import

    X = load().data
    return Parts(X, np.empty((len(X), 0)), np.empty((0, X.shape[1])), (8, 8))
