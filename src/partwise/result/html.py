"""What a notebook shows of a result and of its certificate: plain HTML, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from ..data.names import counted
from .forms import LIST, form_of, heaviest, label_of
from .statements import Statement, of_certificate, statements

if TYPE_CHECKING:
    from .certificate import Certificate
    from .result import Result

MARKS = {True: ("✓", "#2f855a"), False: ("✗", "#c05621"), None: ("·", "inherit")}
MOST_PARTS, TOP = 20, 6  # parts that are listed, with so many of their features


def statement_list(about: Iterable[Statement]) -> str:
    """Hover a line to read what it means."""
    items = "".join(
        f'<li title="{escape(one.means)}"><span style="color:{MARKS[one.good][1]}">{MARKS[one.good][0]}</span> '
        f"{escape(one.text)}</li>"
        for one in about
    )
    return f'<ul style="list-style:none;padding-left:0;margin:.3em 0">{items}</ul>'


def certificate_html(certificate: Certificate) -> str:
    return statement_list(of_certificate(certificate, len(certificate.violations)))


def result_html(result: Result) -> str:
    title = f"{' × '.join(map(str, result.shape))} data{result.kind} in {counted(result.rank, 'part')}"
    ended = f"{counted(result.n_iter, 'iteration')} of {result.solver} in {result.history[-1].time:.2g} s"
    return (
        f"<div><strong>{escape(title)}</strong>{statement_list(statements(result))}"
        f'<div style="opacity:.75">{escape(ended)}</div>{part_table(result)}</div>'
    )


def part_table(result: Result) -> str:
    """Parts by share, with the names that weigh most in them, where the last mode is one of names."""
    labels, A = result.names[-1], result.factors[-1]
    named = labels is not None and form_of(A, labels) == LIST
    rows = []
    for k, share in enumerate(result.shares[:MOST_PARTS]):
        top = ", ".join(label_of(labels, int(j)) for j in heaviest(A[:, k], TOP)) if named and labels else ""
        cell = f'<td style="text-align:left">{escape(top)}</td>' if named else ""
        rows.append(f"<tr><td>{k + 1}</td><td>{share:.1%}</td>{cell}</tr>")
    heading = '<th style="text-align:left">weighs most</th>' if named else ""
    more = f"<caption>{MOST_PARTS} of {result.rank} parts</caption>" if result.rank > MOST_PARTS else ""
    head = f"<thead><tr><th>part</th><th>share</th>{heading}</tr></thead>"
    return f"<table>{more}{head}<tbody>{''.join(rows)}</tbody></table>"
