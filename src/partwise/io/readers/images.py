"""A folder of images of one size, one a row, in grey; in the order of their names."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from .base import Reader, Request, Table, UnreadableError, check_size

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "PPM", "WEBP")
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".pgm", ".ppm", ".webp")
MOST_PIXELS = 50_000_000  # of an image
DEEP = ("I;16", "I;16B", "I;16L", "I", "F")  # kinds of pixels with more than 8 bits


def in_folder(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())


def read(path: Path, request: Request) -> Table:
    files = in_folder(path)
    if not files:
        raise UnreadableError(f"the folder holds no images ({', '.join(SUFFIXES)})")
    first = grey(files[0])
    check_size(first.nbytes * len(files), sum(file.stat().st_size for file in files))
    X = np.empty((len(files), first.size), first.dtype)
    for row, file in zip(X, files, strict=True):
        image = grey(file)
        if image.shape != first.shape or image.dtype != first.dtype:
            raise UnreadableError(
                f"{file.name} is {described(image)}, and {files[0].name} is {described(first)}: all must be alike"
            )
        row[:] = image.ravel()
    names = [file.name for file in files]
    height, width = first.shape
    return Table(X, names, image_shape=(height, width), found=f"{len(files)} images of {described(first)}, in grey")


def grey(file: Path) -> np.ndarray:
    """The pixels of an image, of the first where a file has several."""
    from PIL import Image  # noqa: PLC0415  # optional

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(file, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise UnreadableError(
                    f"{file.name} has {image.width} x {image.height} pixels, and {MOST_PIXELS} at most are read"
                )
            deep = image.mode in DEEP
            return np.asarray(image.convert("F") if deep else image.convert("L"))
    except UnreadableError:
        raise
    except Exception as error:  # damaged images make Pillow raise all kinds of things
        raise UnreadableError(f"{file.name} is damaged, or no image: {str(error)[:200]}") from error


def described(image: np.ndarray) -> str:
    return f"{image.shape[1]} x {image.shape[0]} pixels" + (
        ", more than 8 bits deep" if image.dtype != np.uint8 else ""
    )


READER = Reader((), read, needs=("PIL",))  # for folders
