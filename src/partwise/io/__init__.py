"""Files in and out."""

from .read import Table, read
from .write import write_result

__all__ = ["Table", "read", "write_result"]
