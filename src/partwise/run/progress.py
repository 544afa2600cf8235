"""Telling a person how a run goes: a bar while they watch, or lines on request."""

from __future__ import annotations

import math
import sys
import time

from ..problem import Factors
from .limits import Limits
from .records import Record

REFRESH = 0.1  # seconds between two drawings
WIDTH = 80  # letters, where nothing else is known


def print_line(record: Record, factors: Factors) -> None:
    """One line per iteration on standard output: what `verbose` of scikit-learn's NMF asks for."""
    print(
        f"iteration {record.n_iter:4d}  objective {record.objective:.8g}  "
        f"stationarity {record.stationarity:.2e}  {record.time:.2f} s"
    )


def watched() -> bool:
    """Whether a person is likely to look: a terminal, or a notebook."""
    terminal = sys.stderr is not None and sys.stderr.isatty()  # some services have no standard error
    return terminal or in_notebook()


def in_notebook() -> bool:
    return "ipykernel" in sys.modules


class CellOutput:
    """A stream that shows what was written last in the output of a notebook's cell; saved notebooks stay clean."""

    def __init__(self):
        from IPython.display import display  # noqa: PLC0415  # there wherever this is needed

        self.handle = display({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        self.handle.update({"text/plain": text.strip("\r\n ")}, raw=True)

    def flush(self) -> None:
        pass


class Bar:
    """A bar on standard error, drawn by tqdm; use it as a context, so that the terminal is left clean. It fills as the
    stationarity falls to `tol`, by orders of magnitude: from where it was first known, and never back. Without a
    stationarity it fills with the iterations allowed, and in any case with the time."""

    FORMAT = "{desc} {percentage:3.0f}%|{bar:6}| [{elapsed}{postfix}]"  # of 79 letters, with the largest numbers

    def __init__(self, limits: Limits, max_iter: int, n_starts: int):
        from tqdm.std import tqdm  # noqa: PLC0415  # only where it is drawn

        # a cell of a notebook is a place for one text; elsewhere the bar is as wide as the terminal, or as it needs
        stream, columns = (CellOutput(), WIDTH) if in_notebook() else (sys.stderr, None)
        self.limits, self.max_iter, self.n_starts = limits, max_iter, n_starts
        self.start, self.drawn, self.first, self.done = -1, 0.0, math.inf, 0.0
        self.begin = time.perf_counter()
        self.bar = tqdm(
            total=1.0,
            bar_format=self.FORMAT,
            mininterval=0,
            miniters=0,
            leave=False,
            file=stream,
            ncols=columns,
        )

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        self.bar.close()

    def __call__(self, start: int, record: Record) -> None:
        if start != self.start:
            self.start, self.first, self.done, self.drawn = start, math.inf, 0.0, 0.0
            self.bar.reset()
            self.bar.set_description_str(f"start {start + 1}/{self.n_starts}" if self.n_starts > 1 else "partwise")
        self.done = max(self.done, self.share_done(record))
        now = time.perf_counter()
        if now - self.drawn < REFRESH:
            return
        self.drawn = now
        self.bar.n = self.done
        self.bar.set_postfix_str(self.postfix(record))

    def postfix(self, record: Record) -> str:
        known = f", {record.stationarity:.0e} to {self.limits.tol:.0e}" if self.aims(record) else ""
        return f"{record.n_iter} it, objective {record.objective:.4g}{known}"

    def aims(self, record: Record) -> bool:
        """Whether it is known how far the run is from `tol`."""
        return self.limits.tol > 0 and 0 < record.stationarity < math.inf

    def share_done(self, record: Record) -> float:
        """Between 0 and 1."""
        shares = [0.0]
        if self.limits.time_limit is not None:
            shares.append((time.perf_counter() - self.begin) / self.limits.time_limit)  # of all starts together
        if self.aims(record):
            self.first = self.first if self.first < math.inf else record.stationarity
            span = math.log(max(self.first, 2 * self.limits.tol) / self.limits.tol)
            shares.append(1 - math.log(max(record.stationarity / self.limits.tol, 1.0)) / span)
        else:
            shares.append(record.n_iter / self.max_iter)
        return min(max(shares), 1.0)


class FitBar:
    """A line on standard error that says which of many fits was done last, where `shown`; use it as a context."""

    FORMAT = "{desc}: {n_fmt} fits [{elapsed}{postfix}]"

    def __init__(self, shown: bool):
        self.shown, self.bar = shown, None

    def __enter__(self) -> FitBar:
        if self.shown:
            from tqdm.std import tqdm  # noqa: PLC0415  # only where it is drawn

            stream, columns = (CellOutput(), WIDTH) if in_notebook() else (sys.stderr, None)
            options = {"mininterval": REFRESH, "leave": False, "file": stream, "ncols": columns}
            self.bar = tqdm(desc="partwise", bar_format=self.FORMAT, **options)
        return self

    def __exit__(self, *_) -> None:
        if self.bar is not None:
            self.bar.close()

    def __call__(self, text: str) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(text, refresh=False)
            self.bar.update(1)
