"""
Swimmer
=======

256 images of a swimmer: a torso and four limbs, each in one of four positions (Donoho and Stodden 2003). Plain NMF
leaves the torso in every limb. Stating that an image has one position of each limb takes it apart exactly.

Writes swimmer.png.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s

swimmer = pw.datasets.make_swimmer()
plain = pw.factorize(swimmer.X, 17, init="random", random_state=0)
stated = pw.factorize(
    swimmer.X,
    17,
    structure_W=s.NonNegative() & s.Pattern(groups=[4, 4, 4, 4, 1], nonzeros=1),  # one of each group in an image
    structure_H=s.NonNegative() & s.OrthogonalTo(16, nonzeros=17, method="successive"),  # the torso shares no pixel
    random_state=0,
)


def lit(H):
    """The number of pixels in each part, those below a thousandth left out: the run stops at `tol`, near zeros."""
    return np.sort((H / H.max() > 1e-3).sum(axis=1))


# %%
# With the structure, every limb has its 5 pixels and the torso its 17.
for name, result in (("nonnegative", plain), ("one of each limb", stated)):
    print(f"{name}: relative error {result.relative_error:.1e}, pixels in a part {lit(result.H).tolist()}")
print(stated.certificate)

# %%
# Eight images above, the parts below.
figure = Figure(figsize=(10, 5.2), layout="constrained")
top, *blocks = figure.subfigures(3, 1, height_ratios=[1, 1.6, 1.6])
top.suptitle("some of the images", fontsize=10)
for ax, image in zip(top.subplots(1, 8), swimmer.X[::32], strict=True):
    ax.imshow(image.reshape(swimmer.image_shape), cmap="gray_r")
    ax.set(xticks=[], yticks=[])
for block, (name, result) in zip(blocks, (("nonnegative", plain), ("one of each limb", stated)), strict=True):
    block.suptitle(f"parts, {name}", fontsize=10)
    axes = block.subplots(2, 9).ravel()
    for ax, part in zip(axes, result.H, strict=False):
        ax.imshow(part.reshape(swimmer.image_shape), cmap="gray_r", vmin=0)
    for ax in axes:
        ax.set(xticks=[], yticks=[])
    axes[-1].axis("off")
figure.savefig("swimmer.png", dpi=110)
assert lit(stated.H).tolist() == [5] * 16 + [17]
