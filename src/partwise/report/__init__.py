"""A page about a result: the parts, how the run went, and what is certain about it."""

from .build import build, write_report

__all__ = ["build", "write_report"]
