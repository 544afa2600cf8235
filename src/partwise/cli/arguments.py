"""How options are read: one line of error each, numbers in their range, texts that stand for several values."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable

from ..result.conventions import NORMS


class Parser(argparse.ArgumentParser):
    """Options by their full names only, so that a new one cannot change what a short form means."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        raise ValueError(f"{message}; see {self.prog} --help")


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Defaults in the help, but not where there is none."""

    def _get_help_string(self, action):
        return action.help if action.default in (None, False) else super()._get_help_string(action)


def number(kind: type, what: str, least: float = -math.inf, most: float = math.inf) -> Callable[[str], float]:
    """What reads the number after an option."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read


WHOLE = number(int, "a whole number >= 1", 1)
SEVERAL = number(int, "a whole number >= 2", 2)
SEED = number(int, "a whole number from 0 to 2**32 - 1", 0, 2**32 - 1)
NUMBER = number(float, "a number")
SHARE = number(float, "a number between 0 and 1", math.nextafter(0, 1), math.nextafter(1, 0))
AT_LEAST_0 = number(float, "a number >= 0", 0, sys.float_info.max)
SECONDS = number(float, "a number of seconds > 0", sys.float_info.min)
SCALES = ["balanced", "none", *(f"{A}{norm}" for A in "WH" for norm in ("", *(f":{norm}" for norm in NORMS)))]
TENSOR_SCALE = re.compile(rf"A\d+(:({'|'.join(NORMS)}))?")


def image_shape(text: str) -> tuple[int, int]:
    try:
        height, width = map(int, text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not HEIGHTxWIDTH, such as 19x19") from None
    return height, width


def mode_and_text(text: str) -> tuple[str, str]:
    mode, colon, structure = text.partition(":")
    if not colon or not mode.strip() or not structure.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not MODE:STRUCTURE, such as '1:simplex'")
    return mode.strip(), structure.strip()


def names_of_modes(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def list_of_ranks(text: str) -> list[int]:
    try:
        return [int(WHOLE(part)) for part in text.split(",")]
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers >= 1, such as 2,4,8") from None


def scale(text: str) -> str:
    if text not in SCALES and not TENSOR_SCALE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, SCALES))})")
    return text
