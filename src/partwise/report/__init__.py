"""A page about a result: the parts, how the run went, and what is certain about it; and one about their number."""

from .build import build, write_report
from .selection import write_selection_report

__all__ = ["build", "write_report", "write_selection_report"]
