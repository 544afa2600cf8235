"""
A dictionary of patches
=======================

Patches of 8 x 8 pixels of a photograph as combinations of a few atoms, and noise taken away with them.

The photograph is the one of a temple that comes with scikit-learn. Writes patches.png.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d, reconstruct_from_patches_2d

import partwise as pw

warnings.simplefilter("ignore")  # 60 iterations are enough to show
RNG = np.random.default_rng(0)
image = load_sample_image("china.jpg")[150:310, 110:310].mean(axis=2) / 255
noisy = image + 0.1 * RNG.normal(size=image.shape)
patches = extract_patches_2d(noisy, (8, 8)).reshape(-1, 64)
means = patches.mean(axis=1, keepdims=True)

# %%
# Atoms of norm 1 and any sign, at most 3 in a patch, from 4000 patches without their means.
model = pw.Dictionary(100, nonzeros=3, max_iter=60, random_state=0)
model.fit((patches - means)[RNG.choice(len(patches), 4000, replace=False)])
print(model.result_)

# %%
# Every patch by its best 3 atoms; overlapping patches are averaged.
coded = model.inverse_transform(model.transform(patches - means)) + means
denoised = reconstruct_from_patches_2d(coded.reshape(-1, 8, 8), image.shape)


def psnr(other):
    return -10 * np.log10(np.mean((other - image) ** 2))


print(f"signal to noise ratio (peak): {psnr(noisy):.1f} dB with noise, {psnr(denoised):.1f} dB from 3 of 100 atoms")
figure = Figure(figsize=(11, 3.4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 2.2])
left.suptitle("100 atoms", fontsize=10)
for ax, atom in zip(left.subplots(10, 10).ravel(), model.components_, strict=True):
    ax.imshow(atom.reshape(8, 8), cmap="gray")
    ax.axis("off")
shown = {"with noise": noisy, "3 atoms a patch": denoised, "the photograph": image}
for ax, (title, picture) in zip(right.subplots(1, 3), shown.items(), strict=True):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
    decibels = "" if picture is image else f", {psnr(picture):.1f} dB"
    ax.set_title(title + decibels, fontsize=10)
    ax.axis("off")
figure.savefig("patches.png", dpi=110)
assert psnr(denoised) > psnr(noisy) + 3
