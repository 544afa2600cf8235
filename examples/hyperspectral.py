"""
Hyperspectral unmixing
======================

Each pixel is a mixture of a few materials: shares that add up to 1, times their spectra.

Reads the Samson image (95 x 95 pixels, 156 bands; soil, tree and water) where it is at hand, see
`datasets.local_archive`; otherwise a generated scene stands in. Writes hyperspectral.png: a map for each material, and
the spectra found beside the true ones.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s


def read_samson(path):
    with np.load(path) as file:
        return (
            file["cube"].astype(float),
            file["endmembers"].T.astype(float),
            [name.split("-")[-1].lower() for name in file["names"].astype(str)],
        )


def generate(side=60, bands=80):
    """A lake, a wood and open ground with soft borders, in light that varies a little."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side] / side
    lake, wood = ((0.22 - np.hypot(x - a, y - b)) / 0.05 for a, b in ((0.3, 0.35), (0.7, 0.65)))
    shares = np.exp(np.stack([np.zeros_like(x), np.clip(wood, -6, 6), np.clip(lake, -6, 6)], axis=2))
    shares /= shares.sum(axis=2, keepdims=True)
    nm = np.linspace(0, 1, bands)
    soil, tree, water = 0.3 + 0.6 * nm, 0.1 + 0.8 / (1 + np.exp(-25 * (nm - 0.6))), 0.25 * np.exp(-3 * nm)
    cube = shares @ np.array([soil, tree, water]) + 0.01 * rng.normal(size=(side, side, bands))
    return np.maximum(cube, 0), np.array([soil, tree, water]), ["soil", "tree", "water"]


path = pw.datasets.local_archive("samson")
if path is None:
    print("samson.npz is not here (set PARTWISE_DATA to the folder that holds it): a generated scene stands in")
cube, spectra, names = generate() if path is None else read_samson(path)
X = cube.reshape(-1, cube.shape[2])

# %%
# Shares on the simplex, from the purest pixels as a start (successive projection).
result = pw.factorize(X, 3, structure_W=s.Simplex(), init="spa", random_state=0)
print(result)
unit = lambda A: A / np.linalg.norm(A, axis=1, keepdims=True)  # noqa: E731
cosines = unit(spectra) @ unit(result.H).T
order = cosines.argmax(axis=1)
for name, k in zip(names, order, strict=True):
    print(f"{name}: cosine {cosines[names.index(name), k]:.3f} with the reference")

# %%
# Maps of the shares, and the spectra: dashed is the reference, both scaled to their largest entry.
figure = Figure(figsize=(11, 3.2), layout="constrained")
*maps, curves = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.3])
for ax, name, k, colour in zip(maps, names, order, ["#c05621", "#2f855a", "#2b6cb0"], strict=True):
    ax.imshow(result.W[:, k].reshape(cube.shape[:2]), cmap="viridis", vmin=0, vmax=1)
    ax.set(title=name, xticks=[], yticks=[])
    curves.plot(result.H[k] / result.H[k].max(), color=colour, label=name)
    reference = spectra[names.index(name)]
    curves.plot(reference / reference.max(), color=colour, linestyle="--", linewidth=1)
curves.set(title="spectra, dashed: reference", xlabel="band", yticks=[])
curves.legend(frameon=False, fontsize=8)
curves.spines[["top", "right"]].set_visible(False)
figure.savefig("hyperspectral.png", dpi=110)
assert len(set(order.tolist())) == 3
assert cosines.max(axis=1).min() > 0.9
