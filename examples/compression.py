"""
Image compression
=================

A photograph as few numbers: its blocks of 10 x 10 pixels as sums of a few parts, of which each block uses at most four.

The photograph is the one of a temple that comes with scikit-learn. Writes compression.png.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image

import partwise as pw
from partwise import structures as s

SIDE = 10
image = load_sample_image("china.jpg")[:420, :640].mean(axis=2) / 255
rows, columns = (n // SIDE for n in image.shape)
blocks = image.reshape(rows, SIDE, columns, SIDE).swapaxes(1, 2).reshape(-1, SIDE**2)


def joined(X):
    """Blocks put together again."""
    return X.reshape(rows, columns, SIDE, SIDE).swapaxes(1, 2).reshape(image.shape)


def psnr(X):
    return -10 * np.log10(np.mean((np.clip(X, 0, 1) - blocks) ** 2))


# %%
# Numbers to store: the parts, and for each block its weights that are not 0.
found = {}
for rank in (4, 12, 32):
    result = pw.factorize(blocks, rank, structure_W=s.NonNegative() & s.Sparse(4), n_init=1, tol=1e-3, random_state=0)
    numbers = result.H.size + int((result.W > 0).sum())
    found[rank] = result.reconstruct(), image.size / numbers
    print(f"{rank} parts: {psnr(found[rank][0]):.1f} dB, {found[rank][1]:.0f} times fewer numbers")

# %%
# A detail, before and after.
figure = Figure(figsize=(11, 5.4), layout="constrained")
axes = figure.subplots(2, 2).ravel()
shown = [("the photograph", image)]
shown += [
    (f"{rank} parts: {fewer:.0f} times fewer numbers, {psnr(X):.1f} dB", joined(X))
    for rank, (X, fewer) in found.items()
]
for ax, (title, picture) in zip(axes, shown, strict=True):
    ax.imshow(picture[120:300, 100:380], cmap="gray", vmin=0, vmax=1)
    ax.set_title(title, fontsize=10)
    ax.axis("off")
figure.savefig("compression.png", dpi=100)
levels = [psnr(X) for X, _ in found.values()]
assert levels == sorted(levels)
assert levels[-1] > 22
