"""The errors partwise raises on purpose, each also the built-in error a caller would expect, and how it warns."""

import re
import sys
import warnings
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

LIBRARIES = {"partwise", "sklearn", "joblib"}  # frames of these are not the user's
NUMBER = re.compile(r"\d[\d.e+-]*")
TOLD: WeakKeyDictionary[Any, dict] = WeakKeyDictionary()  # by the estimator that the user called


class IncompatibleError(ValueError):
    """A loss, a structure and a solver that do not go together."""


class UnknownNameError(ValueError):
    """A name that is not in the registry."""


class ArchiveError(ValueError):
    """A file that is not what it should be, or a checkpoint of something else."""


class NotAMatrixError(TypeError, ValueError):
    """Data that are no matrix of numbers."""


class NothingObservedError(ValueError):
    """Data of which no entry counts."""


class ConvergenceWarning(UserWarning):
    """A run that has not converged, in processes that have not imported scikit-learn's class of that name."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, and once a line where Python's filters say so, as by default.

    Python forgets what it has shown whenever any library changes filters for a moment, and takes messages that differ
    in a number for different ones. So it is remembered here: with the module of the line, as long as the same list of
    filters is in force, and for a grid search, whose candidates get copies of the list, with the estimator called.
    """
    frame, caller = users_frame(sys._getframe(1))
    kind = NUMBER.sub("0", message), category, frame.f_lineno
    rules = [tuple(getattr(part, "pattern", part) for part in rule) for rule in warnings.filters]
    in_module = frame.f_globals.setdefault("__partwise_told__", {})
    of_caller = TOLD.setdefault(caller, {}) if hasattr(caller, "get_params") else {}
    filters, same_rules = in_module.get(kind, (None, None))
    if of_caller.get(kind) == rules or (filters is warnings.filters and same_rules == rules):
        return
    shown: dict = {}
    module = frame.f_globals.get("__name__", "partwise")
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, shown)
    if (message, *kind[1:]) in shown:  # once is enough
        in_module[kind], of_caller[kind] = (warnings.filters, rules), rules


def warn_unfinished(message: str) -> None:
    """Warn in the category that users of scikit-learn filter, if anyone can: its import takes half a second."""
    warn(message, getattr(sys.modules.get("sklearn.exceptions"), "ConvergenceWarning", ConvergenceWarning))


def users_frame(frame: FrameType) -> tuple[FrameType, Any]:
    """The nearest frame outside partwise and the libraries that call it, and the first argument of what it calls."""
    first = None
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        first = next((frame.f_locals.get(name) for name in frame.f_code.co_varnames[:1]), None)
        frame = frame.f_back
    return frame, first
