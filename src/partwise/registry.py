"""Names for losses, structures, solvers and initialisations: one line registers one."""

import difflib
from functools import partial

from . import init, losses, solvers, structures
from .errors import IncompatibleError, UnknownNameError
from .problem import Problem

LOSSES = {
    "frobenius": losses.Frobenius,
}

STRUCTURES = {
    "nonnegative": structures.NonNegative,
    "free": structures.Free,
    "l1": structures.L1,
    "l2": structures.L2,
    "elastic": structures.Elastic,
    "box": structures.Box,
    "fixed": structures.Fixed,
}

SOLVERS = {
    "hals": solvers.HALS,
    "gcd": solvers.GCD,
    "mu": solvers.MU,
}

INITS = {
    "random": init.Random,
    "nndsvd": partial(init.NNDSVD, "zeros"),
    "nndsvda": partial(init.NNDSVD, "mean"),
    "nndsvdar": partial(init.NNDSVD, "random"),
    "spa": init.SPA,
}

KINDS = {
    "loss": (LOSSES, losses.Loss),
    "structure": (STRUCTURES, structures.Structure),
    "solver": (SOLVERS, solvers.Solver),
    "init": (INITS, init.Init),
}


def resolve(kind: str, spec):
    """The object for a name, or the object itself; an unknown name is an error that suggests the near ones."""
    names, base = KINDS[kind]
    if isinstance(spec, base):
        return spec
    if isinstance(spec, str) and spec in names:
        return names[spec]()
    known = ", ".join(map(repr, names))
    if not isinstance(spec, str):
        raise TypeError(f"{kind} must be one of {known}, or a partwise {base.__name__}; got {spec!r}")
    near = difflib.get_close_matches(spec.lower(), names, n=2)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise UnknownNameError(f"unknown {kind} {spec!r}; known are {known}.{hint}")


def choose(problem: Problem, spec) -> tuple[solvers.Solver, str]:
    """The solver for a problem and why: the one asked for, or for "auto" the best-ranked that supports it."""
    if spec != "auto":
        solver = resolve("solver", spec)
        if why := solver.supports(problem):
            others = [name for name, cls in SOLVERS.items() if cls().supports(problem) is None]
            hint = f" These can: {', '.join(others)}." if others else ""
            raise IncompatibleError(f"{why}.{hint}")
        return solver, "asked for"
    able = [solver for solver in (cls() for cls in SOLVERS.values()) if solver.supports(problem) is None]
    if not able:
        reasons = "; ".join(f"{name}: {cls().supports(problem)}" for name, cls in SOLVERS.items())
        raise IncompatibleError(f"no solver takes this loss with these structures ({reasons})")
    best = max(able, key=lambda solver: solver.prefer(problem)[0])
    return best, best.prefer(problem)[1]
