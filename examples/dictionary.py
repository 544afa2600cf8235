"""
A dictionary of digits
======================

A dictionary of handwritten digits: every image is a combination of a few atoms, which takes noise away.

Writes dictionary.png: the atoms, and digits before and after.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure

import partwise as pw

warnings.simplefilter("ignore")  # 400 iterations are enough to show
clean = pw.datasets.load_digits().X
noisy = clean + np.random.default_rng(0).normal(scale=4, size=clean.shape)
train, test = noisy[:1500], slice(1500, None)

model = pw.Dictionary(64, nonzeros=4, max_iter=400, random_state=0).fit(train)
denoised = model.inverse_transform(model.transform(noisy[test]))
before, after = (np.linalg.norm(X - clean[test]) / np.linalg.norm(clean[test]) for X in (noisy[test], denoised))
print(model.result_)
print(f"relative error of unseen digits: {before:.1%} with noise, {after:.1%} from 4 of 64 atoms")

# %%
# The atoms, and digits that were not used to learn them: clean, with noise, and from four atoms each.
figure = Figure(figsize=(11, 4.4), layout="constrained")
left, right = figure.subfigures(1, 2)
left.suptitle("64 atoms")
for atom, ax in zip(model.components_, left.subplots(8, 8).ravel(), strict=True):
    ax.imshow(atom.reshape(8, 8), cmap="RdBu_r", vmin=-0.5, vmax=0.5)
    ax.axis("off")
right.suptitle("unseen digits: clean, with noise, four atoms each")
for row, X in zip(right.subplots(3, 10), (clean[test], noisy[test], denoised), strict=True):
    for image, ax in zip(X[: len(row)], row, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.axis("off")
figure.savefig("dictionary.png", dpi=110)
assert after < 0.8 * before
