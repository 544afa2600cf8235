"""
Images with holes
=================

Parts from what is observed, and holes filled in by them.

Hides 30% of the pixels of scikit-learn's digits, or a block in each image. Writes holes.png: some images, their holes,
and what the parts put there when holes are filled with zeros, and when they are missing values.
"""

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s

RNG = np.random.default_rng(0)
RANK, SIDE = 20, 3
digits = pw.datasets.load_digits()
X, shape = digits.X / 16, digits.image_shape


def pixels():
    """True where a pixel is observed."""
    return RNG.uniform(size=X.shape) >= 0.3


def blocks():
    seen = np.ones((len(X), *shape), bool)
    for image in seen:
        top, left = RNG.integers(1, shape[0] - SIDE, size=2)
        image[top : top + SIDE, left : left + SIDE] = False
    return seen.reshape(X.shape)


# an image has few pixels: a part that lies in its hole could get any weight there, but for a penalty on large ones
penalised = s.NonNegative() & s.L2(3.0)
settings = {"structure_W": penalised, "structure_H": penalised, "random_state": 0}

shown = RNG.choice(len(X), 6, replace=False)
found = []
for name, hide in (("30% of the pixels", pixels), ("a block in each image", blocks)):
    seen = hide()
    holed = np.where(seen, X, np.nan)
    zero_fill = pw.factorize(np.where(seen, X, 0), RANK, **settings).impute(X, mask=seen)
    imputed = pw.factorize(holed, RANK, **settings).impute(holed)
    pixel_means = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
    error_zero, error_missing, error_means = (
        np.sqrt(np.mean((filled - X)[~seen] ** 2)) for filled in (zero_fill, imputed, pixel_means)
    )
    print(
        f"{name}: root mean square error in the holes {error_missing:.3f} as missing values, {error_zero:.3f} filled "
        f"with zeros, {error_means:.3f} by the mean of each pixel over all images"
    )
    assert error_missing < error_means < error_zero
    found.append(
        (f"{name}\nerror {error_zero:.2f} with zeros, {error_missing:.2f} as missing", holed, zero_fill, imputed)
    )

gray = colormaps["gray"].with_extremes(bad="#d9822b")
# %%
# The images, their holes, and what is put there.
figure = Figure(figsize=(9, 3.8), layout="constrained")
for block, (title, *rows) in zip(figure.subfigures(1, 2), found, strict=True):
    block.suptitle(title)
    axes = block.subplots(4, len(shown))
    for line, label, images in zip(axes, ("image", "holes", "zeros", "missing"), (X, *rows), strict=True):
        for ax, i in zip(line, shown, strict=True):
            ax.imshow(images[i].reshape(shape), cmap=gray, vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        line[0].set_ylabel(label)
figure.savefig("holes.png", dpi=110)
