"""What is certain of a result, in words for people who do not optimise: each statement with what its term means."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..data.names import counted, factor_names, listed

if TYPE_CHECKING:
    from .certificate import Certificate, Optimality
    from .result import Result

NEAR = 1e-3  # of the best objective: starts that end there found as good an answer

TERMS = {
    "fit": "How much of the data the model reproduces: 100% if it were the data, 0% if it were no better than {null}.",
    "converged": "The run ended because no small change of the factors improves the fit noticeably. It is measured by "
    "the stationarity: 0 means that nothing near is better.",
    "not converged": "The run ended before the stationarity reached the tolerance asked for: parts may still change if "
    "it goes on. Allow more iterations or time.",
    "feasible": "Feasible: the factors have the structure that was asked for (nonnegative, sparse, ...), exactly.",
    "not feasible": "The factors miss the structure that was asked for: several demands at once may contradict each "
    "other.",
    "optimum": "No factorization with so few parts can come closer to the data than this bound (Eckart and Young), so "
    "the fit is at most this far from the best there is.",
    "zero parts": "Parts that are zero everywhere are not used: fewer would fit as well.",
    "unreached": "The model says 0 where something was counted, which this loss calls impossible. Usually these are "
    "features that the parts do not have.",
    "starts": "The problem has many local optima. Runs from different initialisations that end with the same objective "
    "speak for the answer; one that is clearly better was kept.",
    "one start": "Other initialisations may end in other parts that fit as well. `partwise stability`, in Python "
    "pw.stability, says which parts come again.",
    "exact entries": "How many entries of the factors are at the exact best value given all others.",
    "disagreements": "Entries of 0/1 data that the model gets wrong, and that the logical or of the parts gets wrong.",
}


class Statement(NamedTuple):
    """One line about a result."""

    good: bool | None  # None: neither good nor bad
    term: str
    text: str
    means: str


def statements(result: Result, optimality: Optimality | None = None) -> list[Statement]:
    """All that is known, most telling first."""
    about = [fit_statement(result), *of_certificate(result.certificate, len(result.shape), result.status)]
    if optimality is not None:
        about.extend(of_optimality(optimality))
    about.append(starts_statement(result))
    return about


def fit_statement(result: Result) -> Statement:
    null = "a model of zeros" if result.loss.null(1.0) == 0 else "the mean of the data everywhere"
    text = f"The model explains {result.explained:.1%} of {result.loss.explains}"
    if result.loss.error_power == 0.5 and result.loss.quadratic:
        text += f"; its relative error is {result.relative_error:.4g}"
    return Statement(None, "fit", f"{text}.", TERMS["fit"].format(null=null))


def of_certificate(certificate: Certificate, order: int, status: str = "") -> list[Statement]:
    told = [convergence(certificate, status), feasibility(certificate, order)]
    if certificate.zero_components:
        parts = listed(str(k + 1) for k in certificate.zero_components)
        told.append(statement(False, "zero parts", f"Zero everywhere: part {parts}."))
    if certificate.unreached:
        text = f"The model is 0 where X is positive, in {counted(certificate.unreached, 'place')}."
        told.append(statement(False, "unreached", text))
    if certificate.n_suboptimal:
        count, total = certificate.n_suboptimal
        text = f"{total - count} of {total} entries of the factors are at their exact best value, the others held."
        told.append(statement(count == 0 or None, "exact entries", text))
    if certificate.disagreements:
        text = "The model differs from the 0/1 data in {} entries, the logical or of the parts in {}."
        told.append(statement(None, "disagreements", text.format(*certificate.disagreements)))
    return told


UNFINISHED = {
    "max_iter": " within the iterations allowed",
    "time_limit": " in the time allowed",
    "ftol": ", and ended where its error hardly fell any more",
}


def convergence(certificate: Certificate, status: str) -> Statement:
    measured = f"stationarity {certificate.stationarity:.1e}, tolerance {certificate.tol:g}"
    if certificate.stationary:
        return statement(True, "converged", f"The run converged ({measured}).")
    ended = UNFINISHED.get(status, "")
    return statement(False, "not converged", f"The run has not converged{ended} ({measured}).")


def feasibility(certificate: Certificate, order: int) -> Statement:
    if certificate.feasible:
        return statement(True, "feasible", "The factors have the structure asked for, exactly.")
    off = ", ".join(
        f"{name} by up to {violation:.1e}"
        for name, violation in zip(factor_names(order), certificate.violations, strict=True)
        if violation > 0
    )
    return statement(False, "not feasible", f"The factors miss the structure asked for: {off}.")


def of_optimality(optimality: Optimality) -> list[Statement]:
    lines = str(optimality).splitlines()
    return [statement(None, "optimum", line[:1].upper() + line[1:] + ".") for line in lines]


def starts_statement(result: Result) -> Statement:
    if len(result.objectives) == 1:
        text = "From one initialisation: whether the same parts come again from others was not looked at."
        return Statement(None, "one start", text, TERMS["one start"])
    best = min(result.objectives)
    near = sum(objective - best <= NEAR * abs(best) for objective in result.objectives)
    text = f"{near} of {len(result.objectives)} initialisations ended within {NEAR:.1%} of the best objective."
    return statement(near > 1 or None, "starts", text)


def statement(good: bool | None, term: str, text: str) -> Statement:
    return Statement(good, term, text, TERMS[term])
