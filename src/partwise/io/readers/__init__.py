"""Readers of files, one format a file. To add one, write a module with a `Reader` in it and name it in `ALL`."""

from . import arrow, hdf5, images, matlab, mtx, npy, npz, text, tns, wav, zarr

ALL = (
    text.READER,
    arrow.PARQUET,
    arrow.FEATHER,
    npy.READER,
    npz.READER,
    mtx.READER,
    tns.READER,
    hdf5.READER,
    zarr.READER,
    matlab.READER,
    wav.READER,
)
READERS = {suffix: reader for reader in ALL for suffix in reader.suffixes}
FOLDER_OF_IMAGES = images.READER
