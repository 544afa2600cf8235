"""How a mode is best shown: its entries as an image, as a curve, or as a list of those that weigh most; and what is
special to each component."""

from __future__ import annotations

import re

import numpy as np

from ..checks import one_of
from ..data.names import Labels

IMAGE, CURVE, LIST = FORMS = ("image", "curve", "list")
SHOW = one_of(*FORMS) | None
FEWEST = 10  # points of a curve
SMOOTH = 0.35  # mean squared difference of neighbours, over twice the variance: 1 for noise, 0 for a line
DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d(:\d\d){0,2})?)?")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def form_of(A: np.ndarray, labels: Labels | None, image_shape=None, show: str | None = None) -> str:
    """How to show the columns of a factor, where the user does not say. Numbers or dates that rise are an axis, and so
    are places without names whose neighbours are alike."""
    if not SHOW.holds(show):
        raise ValueError(f"show must be {SHOW.says}; got {show!r}")
    if show == IMAGE and image_shape is None:
        raise ValueError("show='image' needs image_shape=(height, width)")
    if show:
        return show
    if image_shape:
        return IMAGE
    if len(A) < FEWEST:
        return LIST
    if labels is None:
        return CURVE if is_smooth(A) else LIST
    return LIST if axis_of(labels) is None else CURVE


def axis_of(labels: Labels | None) -> np.ndarray | None:
    """Labels as places on an axis, if they are numbers or dates that rise, or fall, throughout."""
    if not labels:
        return None
    text = any(isinstance(label, str) for label in labels)
    dates = text and all(DATE.fullmatch(str(label)) for label in labels)
    if text and not dates and not all(NUMBER.fullmatch(str(label)) for label in labels):
        return None
    try:
        places = np.array(labels, dtype="datetime64[s]" if dates else np.float64)
    except ValueError:  # such as the 31st of February
        return None
    steps = np.diff(places).astype(np.float64)
    if not (np.all(steps > 0) or np.all(steps < 0)) or (text and not dates and are_numbers_of_rows(places)):
        return None
    return places


def are_numbers_of_rows(places: np.ndarray) -> bool:
    """Whether text that holds numbers is no more than names: 0, 1, 2, ... or whole numbers with gaps, as identifiers
    have them; wavelengths in a table come in even steps, or with decimals."""
    steps = np.diff(places)
    if not np.array_equal(places, np.rint(places)):
        return False
    return bool((np.all(steps == 1) and places[0] in (0, 1)) or not np.all(steps == steps[0]))


def is_smooth(A: np.ndarray) -> bool:
    """Whether neighbours are more alike than entries that are far apart, in most columns."""
    A = A.astype(np.float64)
    A = A / np.maximum(np.abs(A).max(axis=0), np.finfo(np.float64).tiny)
    variance = 2 * A.var(axis=0)
    rough = np.mean(np.square(np.diff(A, axis=0)), axis=0)[variance > 0] / variance[variance > 0]
    return bool(rough.size and np.median(rough) < SMOOTH)


def exclusive(A: np.ndarray) -> np.ndarray:
    """The share of each component in a row of a factor >= 0, components taken as equally large: 1 where no other has
    it."""
    P = proportions(A)
    total = P.sum(axis=1, keepdims=True)
    return np.divide(P, total, out=np.zeros_like(P), where=total > 0)


def distinctive(A: np.ndarray) -> np.ndarray:
    """How much each row of a factor >= 0 tells a component from the one that is most like it in this row: with columns
    p_k that sum to 1, `min_l p_k log(p_k / p_l) - p_k + p_l` where p_k is the larger, else 0. Dey, Hsiao and Stephens
    (2017), PLoS Genetics 13(3)."""
    P = proportions(A)
    if P.shape[1] == 1:
        return P
    first, second = np.partition(P, -2, axis=1)[:, -1:], np.partition(P, -2, axis=1)[:, -2:-1]
    rival = np.where(first > P, first, second)  # the nearest from below is the nearest of all where p_k is the largest
    floor = np.maximum(rival, np.finfo(np.float64).tiny)
    score = P * np.log(np.maximum(P, floor) / floor) - P + rival
    return np.where(rival < P, score, 0.0)


def proportions(A: np.ndarray) -> np.ndarray:
    """Columns divided by their sums."""
    A = A.astype(np.float64)
    return A / np.where(A.sum(axis=0) > 0, A.sum(axis=0), 1)


def heaviest(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the largest entries that are not 0, by size."""
    top = np.argsort(-np.abs(values), kind="stable")[:count]
    return top[values[top] != 0]


def peaks(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the highest local maxima of a curve, at least a tenth of the highest."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    local = np.flatnonzero(
        (values > padded[:-2]) & (values >= padded[2:]) & (values >= 0.1 * values.max()) & (values > 0)
    )
    return local[heaviest(values[local], count)]


def label_of(labels: Labels | None, place: int) -> str:
    """What stands at a place of a mode, counted from 1 where it has no names."""
    if labels is None:
        return f"#{place + 1}"
    label = labels[place]
    return f"{label:.6g}" if isinstance(label, float) else str(label)


def contributions(factors) -> np.ndarray:
    """The share of each component in what the model puts into each row along the first mode, (dim, rank); rows of zeros
    where it puts nothing."""
    first, *others = (np.abs(A.astype(np.float64)) for A in factors)
    parts = first * np.prod([A.sum(axis=0) for A in others], axis=0)
    total = parts.sum(axis=1, keepdims=True)
    return np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
