"""Compiled kernels on disk, for later processes.

Numba's own cache looks at the file of a function alone, while one kernel is compiled into another; and two processes
that compile one function for different types at once can swap its files, since the index of these is read and written
without a lock. So compiled code is kept in a folder named by a hash of all that goes into it, one file for each
function, types and processor, which is put in its place in one piece.

The folder lies where Numba's files would: in NUMBA_CACHE_DIR, beside the sources, or, where these cannot be written to,
in the user's cache. Where there is no such place, every process compiles for itself.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakSet

import llvmlite
import numba
import numpy as np
from numba.core import event
from numba.core.caching import NullCache
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from ... import garbage
from ..compiling import STOPWATCH
from .linked import CompileResult, LinkedCompiler, QuickCompiler, rebuilt

HERE = Path(__file__).parent
OUTSIDE = (HERE.parent / "records.py", HERE.parents[1] / "losses" / "beta.py")  # other files that kernels are made of
KEPT = 6  # folders in one place, those used last: of other versions, and of a developer's edits
NAME = re.compile(r"partwise-[0-9a-f]{32}")
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz", "reassoc", "nnan"},
    "no_cfunc_wrapper": True,
    "pipeline_class": QuickCompiler,
}
KERNELS: WeakSet = WeakSet()  # that are compiled here
INNER: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "pipeline_class": LinkedCompiler}


def compiler(variant: str, inner: bool = False, **more: Any) -> Callable[[Callable], Callable]:
    """A decorator that compiles a function; `variant`: what it is compiled with that the sources do not say. `inner`:
    only compiled functions call it, so that it is compiled with these (`linked.py`); unless told otherwise by `_nrt`
    it makes no array and returns none, and need not count references. `more`: further options of Numba's."""
    folder, options = folder_for(variant), OPTIONS | (INNER if inner else {}) | more

    def compiled(function: Callable) -> Callable:
        kernel = numba.njit(**options)(function)
        kernel._compilation_chain_init_hook = no_extensions
        KERNELS.add(kernel)
        if folder is not None:
            kernel._cache = KernelCache(function, folder)
        return kernel

    return compiled


def no_extensions() -> None:
    """Instead of importing packages that add to what Numba compiles, such as `sparse`: kernels take plain arrays."""


class Compilations(event.Listener):
    """Runs the stopwatch while Numba compiles kernels, and keeps Python from looking for garbage: Numba makes hundreds
    of thousands of objects, most of which stay. What users compile themselves is none of this."""

    depth, collecting = 0, ExitStack()  # one function is compiled inside another, all in one thread: Numba holds a lock

    def on_start(self, event):
        if event.data["dispatcher"] not in KERNELS:
            return
        STOPWATCH.begin()
        self.depth += 1
        if self.depth == 1:
            self.collecting.enter_context(garbage.put_off())

    def on_end(self, event):
        if event.data["dispatcher"] not in KERNELS:
            return
        self.depth -= 1
        if self.depth == 0:
            self.collecting.close()
        STOPWATCH.end()


event.register("numba:compile", Compilations())


class KernelCache(NullCache):
    """Of one function. A file that cannot be read, or written, is as good as none."""

    def __init__(self, function: Callable, folder: Path):
        module = function.__module__.rpartition(".")[2]
        self.folder, self.name = folder, re.sub(r"[^\w.]", "", f"{module}.{function.__qualname__}")

    @property
    def cache_path(self):
        return str(self.folder)

    def file(self, key: tuple) -> Path:
        return self.folder / f"{self.name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.nbc"

    def load_overload(self, sig, target_context):
        with STOPWATCH.running():
            rtsys.initialize(target_context)  # no more: what compiling needs takes a third of a second to set up
            key = sig, target_context.codegen().magic_tuple()
            try:
                kept, parts = pickle.loads(self.file(key).read_bytes())
                return rebuilt(target_context, *parts) if kept == key else None
            except Exception:  # what a damaged file raises is anyone's guess
                return None

    def save_overload(self, sig, cres):
        if cres.library.has_dynamic_globals:  # addresses of this process
            return
        with STOPWATCH.running(), suppress(OSError):
            self.keep((sig, cres.codegen.magic_tuple()), cres)

    def keep(self, key: tuple, cres: CompileResult) -> None:
        """Write a file in one step."""
        unfinished = self.folder / f"{uuid4().hex}.unfinished"
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(dumps((key, cres._reduce())))
            unfinished.replace(self.file(key))
        finally:
            unfinished.unlink(missing_ok=True)


@cache
def folder_for(variant: str) -> Path | None:
    """Where to keep what is compiled; None where that is nowhere."""
    digest = digest_of(variant)
    for place in places() if digest else ():
        folder = place / f"partwise-{digest}"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            os.utime(folder)  # used now
            break
    else:
        return None
    tidy(place)
    return folder


def digest_of(variant: str) -> str | None:
    """A hash of all that compiled code depends on, but for types and processor; None where the sources are not files,
    as in a frozen program."""
    sources = sorted(HERE.rglob("*.py"))
    if not sources:
        return None
    versions = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__
    total = hashlib.blake2b(repr((variant, versions)).encode(), digest_size=16)
    for source in (*sources, *OUTSIDE):
        total.update(hashlib.blake2b(source.read_bytes()).digest())
    return total.hexdigest()


def places() -> Iterator[Path]:
    """Where the folder may be, best first."""
    if given := vars(numba.config)["CACHE_DIR"]:
        yield Path(given)
    yield HERE / "__pycache__"
    usual = {"win32": os.environ.get("LOCALAPPDATA"), "darwin": "~/Library/Caches"}
    user = os.path.expanduser(usual.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    if os.path.isabs(user):  # there may be no home
        yield Path(user) / "partwise"


def tidy(place: Path) -> None:
    """Delete the folders used longest ago, beyond `KEPT`: those with our name, and of what is in them our files. A
    process that still needs one compiles again."""
    with suppress(OSError):  # another process may be at it
        ours = [folder for folder in place.iterdir() if NAME.fullmatch(folder.name)]
        for folder in sorted(ours, key=lambda folder: folder.stat().st_mtime)[:-KEPT]:
            for file in (*folder.glob("*.nbc"), *folder.glob("*.unfinished")):
                file.unlink(missing_ok=True)
            with suppress(OSError):  # something else is in it
                folder.rmdir()
