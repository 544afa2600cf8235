"""What a run found: factors in the user's units, what is certain of them, and pictures."""

from .result import Result

__all__ = ["Result"]
