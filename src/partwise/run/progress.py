"""Telling a person how a run goes: a bar while they watch, or lines on request."""

from __future__ import annotations

import sys
import time

from ..problem import Factors
from .limits import Limits
from .records import Record

REFRESH = 0.1  # seconds between two drawings


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
    """A bar on standard error, drawn by tqdm; use it as a context, so that the terminal is left clean."""

    FORMAT = "{desc} {percentage:3.0f}%|{bar:20}| {n_fmt} iterations [{elapsed}, {rate_fmt}{postfix}]"

    def __init__(self, limits: Limits, max_iter: int, n_starts: int):
        from tqdm.std import tqdm  # noqa: PLC0415  # only where it is drawn

        # a cell of a notebook is a place for one text; elsewhere the bar is as wide as the terminal
        stream, columns = (CellOutput(), 150) if in_notebook() else (sys.stderr, None)
        self.limits, self.n_starts, self.start, self.drawn = limits, n_starts, -1, 0.0
        self.begin = time.perf_counter()
        self.bar = tqdm(
            total=max_iter,
            bar_format=self.FORMAT,
            mininterval=0,
            miniters=1,
            leave=False,
            file=stream,
            unit=" it",
            ncols=columns,
        )

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        self.bar.close()

    def __call__(self, start: int, record: Record) -> None:
        now = time.perf_counter()
        if start == self.start and now - self.drawn < REFRESH:
            return
        self.drawn = now
        if start != self.start:
            self.start = start
            self.bar.reset()
            self.bar.set_description_str(f"start {start + 1} of {self.n_starts}" if self.n_starts > 1 else "partwise")
        self.bar.set_postfix_str(self.postfix(record), refresh=False)
        self.bar.update(record.n_iter - self.bar.n)

    def postfix(self, record: Record) -> str:
        aim = f", tol {self.limits.tol:g}" if self.limits.tol else ""
        text = f"objective {record.objective:.6g}, stationarity {record.stationarity:.1e}{aim}"
        left = self.seconds_left(record)
        return text if left is None else f"{text}, at most {clock_face(left)} left"

    def seconds_left(self, record: Record) -> float | None:
        """Until the iterations of this start, or the time allowed, are used up."""
        known = []
        if record.n_iter > 1:
            known.append(record.time / record.n_iter * (self.bar.total - record.n_iter))
        if self.limits.time_limit is not None:
            known.append(self.limits.time_limit - (time.perf_counter() - self.begin))  # of all starts together
        return max(0.0, min(known)) if known else None


class FitBar:
    """A line on standard error that says which of many fits was done last, where `shown`; use it as a context."""

    FORMAT = "{desc}: {n_fmt} fits [{elapsed}{postfix}]"

    def __init__(self, shown: bool):
        self.shown, self.bar = shown, None

    def __enter__(self) -> FitBar:
        if self.shown:
            from tqdm.std import tqdm  # noqa: PLC0415  # only where it is drawn

            stream, columns = (CellOutput(), 150) if in_notebook() else (sys.stderr, None)
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


def clock_face(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"
