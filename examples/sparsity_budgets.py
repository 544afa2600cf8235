"""
A sparsity budget
=================

Handwritten digits in 20 parts with one sparsity budget: some become whole strokes, others a few pixels.

Writes sparsity_budgets.png: the parts, the sparsest last, and their sparsity beside that of an equal share for each.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s

digits = pw.datasets.load_digits()
shared = pw.factorize(digits.X, 20, structure_H=s.GroupSparsity(sparsity=0.7), random_state=0)
equal = pw.factorize(digits.X, 20, structure_H=s.GroupSparsity([1] * 20, sparsity=0.7), random_state=0)
print(shared)
print(f"relative error {shared.relative_error:.4f} with a shared budget, {equal.relative_error:.4f} with equal shares")

found = pw.metrics.sparsity(shared.H)
order = np.argsort(found)
# %%
# The parts, the sparsest last.
figure = Figure(figsize=(10, 5.2), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[2, 1])
for k, ax in zip(order, above.subplots(2, 10).ravel(), strict=True):
    ax.imshow(shared.H[k].reshape(digits.image_shape), cmap="gray_r", vmin=0)
    ax.set_title(f"{found[k]:.2f}", fontsize=8)
    ax.axis("off")
ax = below.subplots()
ax.bar(range(20), found[order], color="#2b6cb0")
ax.axhline(0.7, color="#c05621", linewidth=1)
ax.set(xticks=[], ylabel="sparsity", ylim=(0, 1), title="the same mean, shared out by the data")
ax.spines[["top", "right"]].set_visible(False)
figure.savefig("sparsity_budgets.png", dpi=110)
assert shared.relative_error < equal.relative_error
