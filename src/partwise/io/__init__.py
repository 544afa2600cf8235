"""Files in and out."""

from .read import read
from .readers.base import Table
from .save import load, save
from .write import write_result

__all__ = ["Table", "load", "read", "save", "write_result"]
