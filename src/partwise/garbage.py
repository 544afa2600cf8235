"""When Python looks for garbage: not while it makes objects in great numbers that stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """A context for imports and for compiling, where looking through what is made again and again takes a tenth of the
    time. What was made in it counts as old after that."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        grow_old()
        if collects:
            gc.enable()


def grow_old() -> None:
    """Put off looking through new objects until Python next looks through all of them: these are here to stay."""
    if gc.get_freeze_count() == 0:  # else someone wants to keep some out of it for good
        gc.freeze()
        gc.unfreeze()
