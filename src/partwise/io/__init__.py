"""Files in and out: read.py and readers/, write.py and tables.py, archive.py for files of our own."""

from .lazy import LazyMatrix, open_lazily
from .read import read
from .readers.base import Table
from .save import load, save
from .write import write_result

__all__ = ["LazyMatrix", "Table", "load", "open_lazily", "read", "save", "write_result"]
