"""
Faces
=====

Parts of faces by plain least squares, and with a limit on the pixels of each part: eyes, mouths and cheeks rather than
shaded faces.

Reads the CBCL faces (19 x 19 pixels) where they are at hand, see `datasets.local_archive`; otherwise drawn faces stand
in. Writes faces.png.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s


def read_cbcl(path):
    """Every third face, with mean and deviation 1/4, cut to [0, 1]."""
    with np.load(path) as file:
        faces = file["faces"][::3].reshape(-1, 361).astype(float)
    faces -= faces.mean(axis=1, keepdims=True)
    return np.clip(0.25 + 0.25 * faces / faces.std(axis=1, keepdims=True), 0, 1)


def draw(n=600, side=19):
    """Round faces with eyes, brows and a mouth, each darker or lighter, a nose, and light from one side."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side] / (side - 1) - 0.5

    def spot(at_y, at_x, height, width):
        return np.exp(-(((y - at_y) / height) ** 2) - ((x - at_x) / width) ** 2)

    parts = [spot(-0.12, -0.2, 0.06, 0.09) + spot(-0.12, 0.2, 0.06, 0.09)]  # eyes
    parts += [spot(-0.25, -0.2, 0.04, 0.14) + spot(-0.25, 0.2, 0.04, 0.14)]  # brows
    parts += [spot(0.27, 0.0, h, w) for h, w in ((0.04, 0.2), (0.09, 0.1))]  # mouths, closed and open
    parts += [spot(0.06, 0.0, 0.15, 0.05), spot(-0.5, 0.0, 0.12, 0.4)]  # nose, hair
    parts += [spot(0.0, -0.3, 0.4, 0.2), spot(0.0, 0.3, 0.4, 0.2)]  # light from the left and from the right
    amounts = rng.gamma(1.0, 0.6, size=(n, len(parts)))
    return np.clip(amounts @ np.array(parts).reshape(len(parts), -1) + 0.02 * rng.normal(size=(n, side**2)), 0, None)


path = pw.datasets.local_archive("cbcl")
if path is None:
    print("cbcl.npz is not here (set PARTWISE_DATA to the folder that holds it): drawn faces stand in")
X, shape = (draw() if path is None else read_cbcl(path)), (19, 19)
rank, limit = (8, 70) if path is None else (25, 40)

# %%
# The second structure is a limit that holds exactly, on the pixels of each part.
plain = pw.factorize(X, rank, random_state=0)
local = pw.factorize(X, rank, structure_H=s.NonNegative() & s.Sparse(limit, per="component"), n_init=1, random_state=0)
found = {"nonnegative": plain, f"at most {limit} pixels": local}
for name, result in found.items():
    pixels = (result.H > 0).sum(axis=1)
    print(f"{name}: relative error {result.relative_error:.3f}, {pixels.min()} to {pixels.max()} pixels in a part")

# %%
# Each tile is a part: dark is much of it.
columns = 4 if path is None else 5
lines = rank // columns
figure = Figure(figsize=(10, 1.6 + 0.95 * lines), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1, lines + 0.4])
above.suptitle("some of the faces", fontsize=10)
for ax, face in zip(above.subplots(1, 12), X[:: len(X) // 12], strict=False):
    ax.imshow(face.reshape(shape), cmap="gray_r" if path is None else "gray", vmin=0)
    ax.axis("off")
for block, (name, result) in zip(below.subfigures(1, 2), found.items(), strict=True):
    block.suptitle(f"parts, {name}: relative error {result.relative_error:.3f}", fontsize=10)
    for ax, part in zip(block.subplots(lines, columns).ravel(), result.H, strict=True):
        ax.imshow(part.reshape(shape), cmap="gray_r", vmin=0)
        ax.set(xticks=[], yticks=[])
figure.savefig("faces.png", dpi=110)
assert (local.H > 0).sum(axis=1).max() <= limit
assert local.certificate.feasible
