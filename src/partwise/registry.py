"""Names for losses, structures, solvers and initialisations: one line registers one."""

import ast
import difflib
import inspect
import math
import operator
import reprlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache, partial, reduce
from itertools import takewhile
from types import ModuleType
from typing import Any

from . import init, losses, solvers, structures
from .checks import is_real
from .data.names import factor_names
from .errors import IncompatibleError, UnknownNameError
from .problem import Problem

LOSSES = {
    "frobenius": losses.Frobenius,
    "kl": losses.KL,
    "kullback-leibler": losses.KL,
    "itakura-saito": losses.ItakuraSaito,
    "beta": losses.Beta,
    "l1": losses.L1,
    "huber": losses.Huber,
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
    "shared_newton": solvers.SharedNewton,
    "mu": solvers.MU,
    "mu_extrapolated": partial(solvers.MU, extrapolate=True),
    "weighted_median": solvers.WeightedMedian,
    "admm": solvers.ADMM,
    "palm": solvers.PALM,
    "mixed_norm": solvers.MixedNorm,
    "symmetric_cd": solvers.SymmetricCD,
    "symmetric_gn": solvers.SymmetricGN,
    "greedy": solvers.Greedy,
    "streamed": solvers.Streamed,
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

SHORT = reprlib.Repr()  # of what was given, in messages
SHORT.maxstring = SHORT.maxother = 80

# how names with arguments are written, where the first default is no good example
EXAMPLES = {
    "hals": "hals(sweeps=2)",
    "beta": "beta(1.5)",
    "box": "box(0, 1)",
    "elastic": "elastic(0.1, 0.1)",
    "equal_nonzeros": "equal_nonzeros(3)",
    "fixed": "fixed([[1, 0], [0, 1]])",
    "group_sparsity": "group_sparsity(sparsity=0.7)",
    "hoyer": "hoyer(0.7)",
    "huber": "huber(0.5)",
    "l1": "l1(0.1)",
    "l2": "l2(0.1)",
    "orthogonal_to": "orthogonal_to(0)",
    "pattern": "pattern([2, 3], 1)",
    "smooth": "smooth(0.1)",
    "sparse": "sparse(3)",
}

NORMALIZED: dict[type, str] = {structures.Simplex: "l1", structures.UnitNorm: "l2"}  # what scale can do by itself
WITH_ZEROS = (
    structures.Sparse,
    structures.Pattern,
    structures.EqualNonzeros,
    structures.Hoyer,
    structures.GroupSparsity,
    structures.OrthogonalTo,
    structures.Orthogonal,
)

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
        return losses.divergence_of(number)
    if not isinstance(spec, str):
        known, got = ", ".join(map(repr, names)), SHORT.repr(spec)
        raise TypeError(f"{kind} must be one of {known}, or a partwise {base.__name__}; got {got}")
    terms = spec.split("&") if kind == "structure" else [spec]
    return reduce(operator.and_, [build(kind, term.strip()) for term in terms])


def as_number(spec) -> float | None:
    """A loss given as a number, beta, or as the text of one."""
    if not is_real(spec) and not isinstance(spec, str):
        return None
    try:
        return float(spec)
    except ValueError:
        return None


@lru_cache(256)  # objects are frozen, so that one does for all
def build(kind: str, text: str):
    """The object that `name` or `name(literals)` describes; nothing in the text is run."""
    names, _ = KINDS[kind]
    written, bracket, arguments = text.partition("(")
    name = written.strip().lower()
    if name not in names:
        raise UnknownNameError(unknown(kind, written.strip(), names))
    try:
        values, options = arguments_of(f"f({arguments}" if bracket else "f()")
        try:
            signature_of(names[name]).bind(*values, **options)
        except TypeError:
            raise ValueError(takes(name, names[name])) from None
        return names[name](*values, **options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{kind} {SHORT.repr(text)} does not make sense: {error}") from error


signature_of = cache(inspect.signature)  # takes as long as a small step of a solver


def arguments_of(call: str) -> tuple[list, dict]:
    """The literals in the brackets of a call."""
    try:
        node = ast.parse(call, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError("write name(arguments), such as hals(sweeps=2), and & between structures")
    return [literal(value) for value in node.args], {str(o.arg): literal(o.value) for o in node.keywords}


def takes(name: str, maker) -> str:
    """Which arguments a name takes, with an example; fields from `entries` on are not the user's."""
    parameters = takewhile(lambda p: p.name != "entries", signature_of(maker).parameters.values())
    listed = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    example = EXAMPLES.get(name, f"{name}({listed[0]})" if listed else name)
    return f"{name} takes {', '.join(listed) or 'no arguments'}; write {example}"


def literal(node: ast.expr):
    """The number or word that a piece of text stands for; inf is a number too."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -literal(node.operand)
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    try:
        return ast.literal_eval(node)
    except ValueError:
        word = ast.unparse(node)
        raise ValueError(f"{word} is not a number" + f"; a word needs quotes, '{word}'" * word.isidentifier()) from None


def unknown(kind: str, spec: str, names) -> str:
    """The sentence for a name that is not known, with the near ones."""
    names = [*names, "auto"] if kind == "solver" else names
    near = difflib.get_close_matches(spec.lower(), names, n=2)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    what = f"unknown {kind} {SHORT.repr(spec)}" if spec else f"the name of a {kind} is missing"
    return f"{what}; known are {', '.join(map(repr, names))}.{hint}"


def refusal(solver: solvers.Solver, problem: Problem) -> str | None:
    """None, or the sentence that tells why this solver cannot take this problem."""
    if problem.symmetric and not solver.symmetric:
        return f"{type(solver).__name__} is for factors that differ, not for symmetric={problem.symmetric!r}"
    if problem.data.in_blocks and not solver.in_blocks:
        return f"{type(solver).__name__} needs all of X at once, and X is read in blocks of rows"
    users: tuple[Any, ...] = (solver, *problem.structures, problem.loss)
    for user in users:
        if name := lacking(problem.data.kernels, user.kernels):
            arrays = problem.data.array_type.__name__
            who = user if user is not solver else type(solver).__name__
            return f"{who} needs the kernel {name!r}, which there is not for arrays of type {arrays}"
    return solver.supports(problem)


@cache
def lacking(module: ModuleType, names: tuple[str, ...]) -> str | None:
    """The first of these kernels that a module does not have."""
    return next((name for name in names if not hasattr(module, name)), None)


@cache
def by_default(maker: Callable[[], solvers.Solver]) -> solvers.Solver:
    """A solver with its own settings; it is frozen, so that one does for all."""
    return maker()


def choose(problem: Problem, spec) -> tuple[solvers.Solver, str]:
    """The solver for a problem and why: the one asked for, or for "auto" the best-ranked that supports it."""
    if spec != "auto":
        solver = resolve("solver", spec)
        if why := refusal(solver, problem):
            # where the same solver could with other parameters, the sentence says which
            itself = refusal(type(solver)(), problem) is None
            others = [] if itself else [name for name, cls in SOLVERS.items() if refusal(cls(), problem) is None]
            hint = f"These can: {', '.join(others)}." if others else way_out(problem)
            raise IncompatibleError(f"{why}. {hint}".strip())
        return configure(solver, problem, "asked for")
    able = [solver for solver in map(by_default, SOLVERS.values()) if refusal(solver, problem) is None]
    if not able:
        if why := way_out(problem):
            raise IncompatibleError(why)
        if problem.data.in_blocks:
            why = refusal(solvers.Streamed(), problem)
            raise IncompatibleError(f"X is read in blocks of rows, and {why}. Pass X in memory, where more goes.")
        # what solvers of other losses say would only hide the reason
        plain = replace(problem, structures=(structures.NonNegative(),) * len(problem.structures))
        right = [name for name, cls in SOLVERS.items() if refusal(cls(), plain) is None] or list(SOLVERS)
        raise IncompatibleError(f"no solver takes this loss with these structures: {reasons(problem, right)}")
    best = max(able, key=lambda solver: solver.prefer(problem)[0])
    return configure(best, problem, best.prefer(problem)[1])


def way_out(problem: Problem) -> str:
    """What to do about a structure that goes with least squares alone, where the loss is another; else nothing."""
    for name, structure in zip(factor_names(len(problem.structures)), problem.structures, strict=True):
        entries = structure.elementwise
        if problem.loss.quadratic or (entries is not None and not entries.binary):
            continue
        losses = "loss='frobenius'" if entries is None else "loss='frobenius' or 'l1'"
        others = "".join(f", or {other}" for other in instead(structure, name))
        return (
            f"{problem.loss} takes structures that act entry by entry (NonNegative, L1, L2, Elastic, Box, Fixed), "
            f"not {structure} for {name}: use {losses}{others}."
        )
    return ""


def instead(structure: structures.Structure, name: str) -> list[str]:
    """Ways to something like a structure with any loss."""
    parts = getattr(structure, "members", [structure])  # of several that have no closed form together
    found = []
    for part in parts:
        if norm := NORMALIZED.get(type(part)):
            vector = {"W": "sample of W", "H": "feature of H"}.get(name, f"row of {name}")
            by_component = f"normalize=({name!r}, {norm!r}) in factorize"
            found.append(
                by_component if part.per == "component" else f"divide each {vector} by its {norm} norm after the fit"
            )
        elif isinstance(part, WITH_ZEROS):
            found.append("L1 penalties on all factors, 'nonnegative & l1(0.1)', which make zeros too")
    return list(dict.fromkeys(found))


def reasons(problem: Problem, names: list[str]) -> str:
    """Why none of these solvers takes it, each reason once."""
    told: dict[str, list[str]] = {}
    for name in names:
        solver = SOLVERS[name]()
        why = refusal(solver, problem) or ""
        told.setdefault(why.removeprefix(f"{type(solver).__name__} "), []).append(name)
    return "; ".join(f"{', '.join(those)}: {why}" for why, those in told.items())


def configure(solver: solvers.Solver, problem: Problem, reason: str) -> tuple[solvers.Solver, str]:
    """The solver with its settings made up, and all reasons in one sentence."""
    solver, why = solver.configured(problem)
    return solver, "; ".join(filter(None, [reason, why]))
