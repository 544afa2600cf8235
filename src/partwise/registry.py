"""Names for losses, structures, solvers and initialisations: one line registers one."""

import ast
import difflib
import math
import operator
from dataclasses import replace
from functools import partial, reduce
from numbers import Real
from typing import Any

from . import init, losses, solvers, structures
from .errors import IncompatibleError, UnknownNameError
from .problem import Problem

LOSSES = {
    "frobenius": losses.Frobenius,
    "kl": losses.KL,
    "kullback-leibler": losses.KL,
    "itakura-saito": losses.ItakuraSaito,
    "beta": losses.Beta,
    "l1": losses.L1,
}

STRUCTURES = {
    "nonnegative": structures.NonNegative,
    "free": structures.Free,
    "l1": structures.L1,
    "l2": structures.L2,
    "elastic": structures.Elastic,
    "box": structures.Box,
    "binary": structures.Binary,
    "fixed": structures.Fixed,
    "sparse": structures.Sparse,
    "equal_nonzeros": structures.EqualNonzeros,
    "pattern": structures.Pattern,
    "unit_norm": structures.UnitNorm,
    "simplex": structures.Simplex,
    "hoyer": structures.Hoyer,
    "group_sparsity": structures.GroupSparsity,
    "orthogonal_to": structures.OrthogonalTo,
    "orthogonal": structures.Orthogonal,
    "monotone": structures.Monotone,
    "unimodal": structures.Unimodal,
    "smooth": structures.Smooth,
}

SOLVERS: dict[str, Any] = {
    "hals": solvers.HALS,
    "cd": partial(solvers.HALS, sweeps=1, extrapolate=False),  # scikit-learn's
    "gcd": solvers.GCD,
    "newton_kl": solvers.NewtonKL,
    "newton": solvers.Newton,
    "mu": solvers.MU,
    "mu_extrapolated": partial(solvers.MU, extrapolate=True),
    "weighted_median": solvers.WeightedMedian,
    "admm": solvers.ADMM,
    "palm": solvers.PALM,
    "mixed_norm": solvers.MixedNorm,
    "symmetric_cd": solvers.SymmetricCD,
    "greedy": solvers.Greedy,
}

INITS = {
    "random": init.Random,
    "nndsvd": partial(init.NNDSVD, "zeros"),
    "nndsvda": partial(init.NNDSVD, "mean"),
    "nndsvdar": partial(init.NNDSVD, "random"),
    "spa": init.SPA,
    "greedy": init.GreedyLS,
    "greedy-l1": init.GreedyL1,
    "smooth-l1": init.SmoothL1,
}

KINDS: dict[str, tuple[dict[str, Any], type]] = {
    "loss": (LOSSES, losses.Loss),
    "structure": (STRUCTURES, structures.Structure),
    "solver": (SOLVERS, solvers.Solver),
    "init": (INITS, init.Init),
}


def resolve(kind: str, spec):
    """The object for a text such as "hals" or "nonnegative & l1(0.1)", or the object itself."""
    names, base = KINDS[kind]
    if isinstance(spec, base):
        return spec
    if kind == "loss" and (number := as_number(spec)) is not None:
        named = {2.0: losses.Frobenius, 1.0: losses.KL, 0.0: losses.ItakuraSaito}
        return named[number]() if number in named else losses.Beta(number)
    if not isinstance(spec, str):
        raise TypeError(
            f"{kind} must be one of {', '.join(map(repr, names))}, or a partwise {base.__name__}; got {spec!r}"
        )
    terms = spec.split("&") if kind == "structure" else [spec]
    return reduce(operator.and_, [build(kind, term.strip()) for term in terms])


def as_number(spec) -> float | None:
    """A loss given as a number, beta, or as the text of one."""
    if isinstance(spec, bool) or not isinstance(spec, Real | str):
        return None
    try:
        return float(spec)
    except ValueError:
        return None


def build(kind: str, text: str):
    """The object that `name` or `name(literals)` describes; nothing in the text is run."""
    names, _ = KINDS[kind]
    name, bracket, arguments = text.partition("(")
    if name.strip().lower() not in names:
        raise UnknownNameError(unknown(kind, name.strip(), names))
    try:
        call = ast.parse(f"f({arguments}" if bracket else "f()", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise SyntaxError("write name(numbers), and & between structures")
        values = [literal(value) for value in call.args]
        options = {str(option.arg): literal(option.value) for option in call.keywords}
        return names[name.strip().lower()](*values, **options)
    except (SyntaxError, TypeError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"{kind} {text!r} does not make sense: {reason}") from error


def literal(node: ast.expr):
    """The number or word that a piece of text stands for; inf is a number too."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -literal(node.operand)
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"{ast.unparse(node)} is not a number") from None


def unknown(kind: str, spec: str, names) -> str:
    """The sentence for a name that is not known, with the near ones."""
    names = [*names, "auto"] if kind == "solver" else names
    near = difflib.get_close_matches(spec.lower(), names, n=2)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"unknown {kind} {spec!r}; known are {', '.join(map(repr, names))}.{hint}"


def refusal(solver: solvers.Solver, problem: Problem) -> str | None:
    """None, or the sentence that tells why this solver cannot take this problem."""
    if problem.symmetric and not solver.symmetric:
        return f"{type(solver).__name__} is for X ~ W H with two factors, not for symmetric={problem.symmetric!r}"
    return solver.supports(problem)


def choose(problem: Problem, spec) -> tuple[solvers.Solver, str]:
    """The solver for a problem and why: the one asked for, or for "auto" the best-ranked that supports it."""
    if spec != "auto":
        solver = resolve("solver", spec)
        if why := refusal(solver, problem):
            # where the same solver could with other parameters, the sentence says which
            itself = refusal(type(solver)(), problem) is None
            others = [] if itself else [name for name, cls in SOLVERS.items() if refusal(cls(), problem) is None]
            hint = f" These can: {', '.join(others)}." if others else ""
            raise IncompatibleError(f"{why}.{hint}")
        return settle(solver, problem, "asked for")
    able = [solver for solver in (cls() for cls in SOLVERS.values()) if refusal(solver, problem) is None]
    if not able:
        # what solvers of other losses say would only hide the reason
        plain = replace(problem, structures=(structures.NonNegative(),) * len(problem.structures))
        right = [name for name, cls in SOLVERS.items() if refusal(cls(), plain) is None] or list(SOLVERS)
        raise IncompatibleError(f"no solver takes this loss with these structures: {reasons(problem, right)}")
    best = max(able, key=lambda solver: solver.prefer(problem)[0])
    return settle(best, problem, best.prefer(problem)[1])


def reasons(problem: Problem, names: list[str]) -> str:
    """Why none of these solvers takes it, each reason once."""
    told: dict[str, list[str]] = {}
    for name in names:
        solver = SOLVERS[name]()
        why = refusal(solver, problem) or ""
        told.setdefault(why.removeprefix(f"{type(solver).__name__} "), []).append(name)
    return "; ".join(f"{', '.join(those)}: {why}" for why, those in told.items())


def settle(solver: solvers.Solver, problem: Problem, reason: str) -> tuple[solvers.Solver, str]:
    """The solver with its settings made up, and all reasons in one sentence."""
    solver, why = solver.settled(problem)
    return solver, "; ".join(filter(None, [reason, why]))
