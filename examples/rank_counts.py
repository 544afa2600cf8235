"""
How many parts are in these counts?
===================================

Poisson counts of six planted parts. The error of what was fitted always falls; the error of what was left out turns
where parts begin to follow the noise.

Generated data. Writes rank_counts.png.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw

rng = np.random.default_rng(3)
programs = rng.gamma(0.4, size=(6, 80))
usage = rng.dirichlet(np.full(6, 0.4), size=200)
counts = rng.poisson(2.5 * usage @ programs).astype(float)
print(f"{counts.shape[0]} x {counts.shape[1]} counts, {np.mean(counts == 0):.0%} of them 0, mean {counts.mean():.2f}")

# %%
# Two ways to leave out: single entries, or half of everything that was counted (thinning, for Poisson counts).
speckled = pw.select_rank(counts, 10, loss="kl", random_state=0)
thinned = pw.select_rank(counts, 10, loss="kl", method="thinning", random_state=0)
print(speckled)
print(f"by thinning: {thinned.rank} parts; dispersion {speckled.dispersion:.2f} (1 for Poisson)")

# %%
# The number of parts is where the error of what was left out is lowest, and all parts come again.
figure = Figure(figsize=(10, 3.4), layout="constrained")
left, middle, right = figure.subplots(1, 3)
for ax, name, selection in ((left, "single entries left out", speckled), (middle, "counts split in two", thinned)):
    held = np.array([row.held_out for row in selection.table])
    fitted = np.array([row.training for row in selection.table])
    ax.plot(selection.ranks, held / held[0], color="#2b6cb0", marker="o", markersize=4, label="left out")
    ax.plot(selection.ranks, fitted / fitted[0], color="0.6", linestyle="--", label="fitted")
    ax.axvline(selection.rank, color="#c05621", linewidth=1.2)
    ax.set(title=f"{name}: {selection.rank} parts", xlabel="parts", ylabel="deviance, of one part's")
    ax.legend(frameon=False)
share = speckled.result.shares
right.bar(np.arange(1, share.size + 1), 100 * share, color="#2b6cb0")
right.set(title="what each of the parts explains", xlabel="part", ylabel="% of the counts")
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig("rank_counts.png", dpi=110)
assert speckled.rank == 6
assert abs(thinned.rank - 6) <= 1
