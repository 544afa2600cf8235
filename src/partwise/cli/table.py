"""Tables for terminals."""

from __future__ import annotations

from collections.abc import Sequence


def lined_up(lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns, the last as long as it is."""
    widths = [max(map(len, column)) for column in list(zip(*lines, strict=True))[:-1]]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]) for line in lines
    )
