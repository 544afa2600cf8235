"""How good it is, and how the run went."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.names import Mode, counted
from ..data.observed import Observed
from ..result import Result, plots
from ..result.certificate import Optimality
from ..result.forms import CURVE, IMAGE, form_of, heaviest, label_of
from ..result.plots.residual import beside_curves, examples_of
from ..result.residual import Residual, residual_of
from ..result.statements import statements
from .pictures import image, svg

TOP = 8  # rows, columns or slices that most of the loss comes from
MARKS = {True: "good", False: "bad", None: "plain"}
ENDINGS = {
    "converged": "it reached the stationarity asked for",
    "max_iter": "it used up its iterations",
    "stalled": "its solver had nothing more to do",
    "target": "it reached the target objective",
    "ftol": "its error hardly fell any more",
    "time_limit": "its time was up",
    "callback": "a callback ended it",
    "interrupted": "it was interrupted",
}


def quality(result: Result, optimality: Optimality | None) -> dict[str, Any]:
    """What is certain, in words."""
    return {
        "statements": [one._asdict() | {"mark": MARKS[one.good]} for one in statements(result, optimality)],
        "good": result.certificate.feasible and result.certificate.stationary,
    }


def failures(result: Result, modes: tuple[Mode, ...], given: Observed, image_shape, show) -> dict[str, Any]:
    """Where the model fails, from the data."""
    residual = residual_of(result, given)
    form = form_of(result.factors[-1], modes[-1].labels, image_shape, show)
    pictured = len(modes) == 2
    curves = pictured and form == CURVE
    return {
        "sampled": f"{len(residual.rows):,} of {residual.n_rows:,} {modes[0].name}" if residual.sampled else None,
        "modes": [worst(residual, mode, m) for m, mode in enumerate(modes)],
        "where": image(residual.losses[1].reshape(image_shape)) if pictured and form == IMAGE else None,
        "images": beside(residual, modes[0], image_shape) if pictured and form == IMAGE else [],
        "curves": svg(lambda: beside_curves(result, residual), "Data and model of some samples") if curves else None,
    }


def worst(residual: Residual, mode: Mode, m: int) -> dict[str, Any]:
    """The places along a mode that most of the loss comes from."""
    shares, explained = residual.shares(m), residual.explained(m)
    lines = [
        {
            "name": label_of(mode.labels, int(residual.rows[i] if m == 0 else i)),
            "share": f"{shares[i]:.2%}",
            "width": f"{shares[i] / max(shares.max(), 1e-300):.3f}",
            "explained": "" if np.isnan(explained[i]) else f"{explained[i]:.0%}",
        }
        for i in heaviest(np.maximum(residual.excess(m), 0), TOP)
    ]
    return {"name": mode.name, "lines": lines}


def beside(residual: Residual, mode: Mode, image_shape) -> list[dict[str, str]]:
    """Samples that are images, with their model and the difference."""
    shown = []
    for word, i in examples_of(residual):
        data, model = residual.data[i], residual.model[i]
        difference = np.where(np.isnan(data), 0, data - model)
        largest = max(float(np.nanmax(np.abs(data), initial=0)), float(np.abs(model).max()))
        views = {
            "data": image(np.nan_to_num(data).reshape(image_shape), largest),
            "model": image(model.reshape(image_shape), largest),
            "difference": image(with_both_signs(difference).reshape(image_shape), largest),
        }
        shown.append({"word": word, "name": label_of(mode.labels, int(residual.rows[i])), **views})
    return shown


def with_both_signs(values: np.ndarray) -> np.ndarray:
    """A difference is drawn in red and blue even where it is nowhere negative."""
    return values if values.min(initial=0) < 0 else np.where(values == 0, -np.finfo(np.float64).tiny, values)


def course(result: Result) -> dict[str, Any]:
    """How the run went: solver, time, iterations, and the objectives of all starts."""
    best = min(result.objectives)
    seconds = f"{result.history[-1].time:.2f} s"
    if result.compile_seconds >= 0.05:
        seconds += f", and {result.compile_seconds:.1f} s before that to compile or load kernels, which later fits save"
    return {
        "facts": [
            ("solver", f"{result.solver}: {result.reason}"),
            ("ended", f"after {counted(result.n_iter, 'iteration')}: {ENDINGS[result.status]}"),
            ("time", seconds),
            ("objective", f"{result.objective:.8g}"),
        ],
        "convergence": svg(lambda: plots.convergence(result), "Objective and stationarity against time"),
        "starts": [
            {
                "number": i + 1,
                "objective": f"{f:.8g}",
                "above": f"{(f - best) / abs(best or 1.0):.2%}",
                "best": f == best,
            }
            for i, f in enumerate(result.objectives)
        ],
        "path": svg(lambda: plots.path(result), "Error against the number of parts, and what each part gained")
        if result.path
        else None,
        "steps": [str(step) for step in result.path],
    }
