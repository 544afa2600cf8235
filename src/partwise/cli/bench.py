"""partwise bench"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..data.validation import checked_data, checked_rank
from ..io import read
from ..registry import SOLVERS, resolve
from .arguments import WHOLE, HelpFormatter


def add(commands) -> None:
    bench_ = commands.add_parser(
        "bench", help="race against scikit-learn on this machine", formatter_class=HelpFormatter
    )
    bench_.set_defaults(command=bench)
    bench_.add_argument("file", nargs="?", help="your data, as for fit; without it, generated data, about a minute")
    bench_.add_argument("--rank", type=WHOLE, default=20, help="number of parts, with a file")
    bench_.add_argument("--loss", default="frobenius", help="as for fit; other than least squares with a file only")
    bench_.add_argument("--key", help="name of the array in a file with several")
    bench_.add_argument("--starts", type=WHOLE, default=3, help="random starts of each race")
    bench_.add_argument("--solver", default="auto", help=f"auto, or one of {', '.join(SOLVERS)}")


def bench(options) -> int:
    """The short form of the benchmarks: who gets to scikit-learn's objective first."""
    from .. import bench as racing  # noqa: PLC0415  # slow to import

    loss = resolve("loss", options.loss)
    if "mu" not in loss.updates:
        raise ValueError(
            f"--loss {options.loss}: scikit-learn has no solver for it to race against; use frobenius, kl or a beta"
        )
    if options.file:
        X = checked_data(read(options.file, key=options.key).X)
        contests = [racing.Contest(Path(options.file).name, X, checked_rank(options.rank), loss=options.loss)]
    elif loss.quadratic:
        contests = racing.short_contests()
    else:
        raise ValueError(f"--loss {options.loss} needs a file: the generated data are for least squares")
    sides = {"partwise": partial(racing.partwise, solver=options.solver)}
    for contest in contests:
        racing.warm_up(contest, sides)
        heats = [racing.race(contest, seed, sides) for seed in range(options.starts)]
        print(racing.summary(contest, heats), flush=True)
    print(racing.machine())
    return 0
