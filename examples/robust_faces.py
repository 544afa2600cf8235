"""
Robust faces
============

Images with wrong pixels: parts by least squares, which follow the errors, and by L1, which leave them alone.

Reads the ORL faces where they are at hand, see `datasets.local_archive`; otherwise scikit-learn's digits stand in.
Writes robust_faces.png: some images, spoilt by salt and pepper and by missing blocks, and what both losses make of
them.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw

RNG = np.random.default_rng(0)


def read_faces(path):
    """Every other pixel of half of the faces, so that this takes a minute or two."""
    with np.load(path) as file:
        faces = file["faces"][::2, ::2, ::2] / 255
    return faces.reshape(len(faces), -1), faces.shape[1:]


def salt_and_pepper(X, shape, share=0.15):
    """A share of the pixels black or white."""
    return np.where(RNG.uniform(size=X.shape) < share, RNG.integers(0, 2, size=X.shape) * X.max(), X)


def blocks(X, shape, side=0.35):
    """A white block somewhere in every fifth image."""
    images = X.copy().reshape(-1, *shape)
    height, width = (max(2, round(side * n)) for n in shape)
    for image in images[::5]:
        top, left = RNG.integers(shape[0] - height), RNG.integers(shape[1] - width)
        image[top : top + height, left : left + width] = X.max()
    return images.reshape(X.shape)


path = pw.datasets.local_archive("orl")
if path is None:
    print("orl.npz is not here (set PARTWISE_DATA to the folder that holds it): scikit-learn's digits stand in")
    digits = pw.datasets.load_digits()
    X, shape, rank = digits.X[:500] / 16, digits.image_shape, 12
else:
    (X, shape), rank = read_faces(path), 15

shown = [0, 20, 40, 60]
rows, errors = [], {}
for name, spoil in (("salt and pepper", salt_and_pepper), ("missing blocks", blocks)):
    spoilt = spoil(X, shape)
    fits = {loss: pw.factorize(spoilt, rank, loss=loss, random_state=0, max_iter=100) for loss in ("frobenius", "l1")}
    models = {loss: np.clip(fit.W @ fit.H, 0, X.max()) for loss, fit in fits.items()}
    errors[name] = {loss: np.abs(model - X).mean() / X.mean() for loss, model in models.items()}
    print(f"{name}: mean error against the clean images, least squares {errors[name]['frobenius']:.3f}, "
          f"L1 {errors[name]['l1']:.3f}")  # fmt: skip
    print(fits["l1"].certificate)
    rows.append((name, spoilt, models))

# %%
# Some of the images, and what both losses make of them.
figure = Figure(figsize=(9, 6), layout="constrained")
titles = ["clean", "spoilt", "least squares", "L1"]
for block, (name, spoilt, models) in zip(figure.subfigures(1, 2), rows, strict=True):
    block.suptitle(f"{name}\nerror {errors[name]['frobenius']:.2f} by least squares, {errors[name]['l1']:.2f} by L1")
    axes = block.subplots(len(titles), len(shown))
    for line, title, images in zip(axes, titles, (X, spoilt, models["frobenius"], models["l1"]), strict=True):
        for ax, i in zip(line, shown, strict=True):
            ax.imshow(images[i].reshape(shape), cmap="gray", vmin=0, vmax=X.max())
            ax.set(xticks=[], yticks=[])
        line[0].set_ylabel(title)
figure.savefig("robust_faces.png", dpi=110)
assert all(error["l1"] < error["frobenius"] for error in errors.values())
