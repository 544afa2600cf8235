"""partwise demo"""

from __future__ import annotations

from functools import partial

from ..datasets import make_swimmer
from ..factorize import factorize
from ..structures import NonNegative, OrthogonalTo, Pattern
from .deliver import checked_output, deliver
from .options import add_force


def add(commands) -> None:
    demo_ = commands.add_parser("demo", help="factorize the Swimmer images and write a report")
    demo_.set_defaults(command=demo, no_certify=False, one_more=False, json=False)
    demo_.add_argument("--out", default="demo", metavar="DIR", help="folder for the results (default: demo)")
    add_force(demo_)


def demo(options) -> int:
    """17 parts in five groups, in order: every image has one of the four positions of each limb, and the last part, of
    17 pixels at most, shares none with the others."""
    checked_output(options.out, options.force)
    swimmer = make_swimmer()
    fitted = partial(
        factorize,
        swimmer.X,
        17,
        structure_W=NonNegative() & Pattern(groups=[4, 4, 4, 4, 1], nonzeros=1),
        structure_H=NonNegative() & OrthogonalTo(16, nonzeros=17, method="successive"),
        random_state=0,
        tol=1e-6,
    )
    report = {
        "title": "Swimmer: 17 parts in five groups",
        "X": swimmer.X,
        "image_shape": swimmer.image_shape,
        "columns": 4,
    }
    return deliver(fitted, swimmer.X, options, print, report)
