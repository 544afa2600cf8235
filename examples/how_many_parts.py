"""
Four answers to how many
========================

How many parts? Four data sets, and four answers: a number, none, no end, and parts that nobody can name.

Counts of four planted parts, with bursts; the same with every feature shuffled; digits, which are no sum of a fixed
number of things; parts without zeros, which can be exchanged for others. Writes how_many_parts.png: the error of
entries that were left out against the number of parts.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw

RNG = np.random.default_rng(0)
means = 5 * pw.datasets.make_parts(150, 60, 4, random_state=1).X
counts = RNG.poisson(means * RNG.gamma(5, 1 / 5, means.shape)).astype(float)
smooth = RNG.uniform(size=(100, 8)) @ RNG.uniform(size=(8, 60)) + 0.1 * RNG.normal(size=(100, 60))

searches = {
    "counts of four parts": pw.select_rank(counts, 12, loss="kl"),
    "the same, features shuffled": pw.select_rank(RNG.permuted(counts, axis=0), 12, loss="kl"),
    "handwritten digits": pw.select_rank(pw.datasets.load_digits().X[::3], 12),
    "parts without zeros": pw.select_rank(smooth, 12),
}
for name, found in searches.items():
    print(f"{name}: {found}\n")

four, shuffled, digits, exchangeable = searches.values()
assert four.rank == 4
assert four.dispersion > 1.2  # counts vary more than Poisson
assert shuffled.rank == 1
assert digits.no_end
assert exchangeable.rank == 8
assert exchangeable.row(8).weakest < 0.8

answers = ["4", "1, nothing there", "no end", "8, not unique"]
# %%
# The held-out error against the number of parts; the line is the number taken.
figure = Figure(figsize=(12, 3), layout="constrained")
for ax, (name, found), answer in zip(figure.subplots(1, 4), searches.items(), answers, strict=True):
    ax.axvspan(found.window[0] - 0.4, found.best + 0.4, color="#2b6cb0", alpha=0.1, linewidth=0)
    ax.plot(found.ranks, found.curves.T, color="#90cdf4", linewidth=0.8)
    ax.plot(found.ranks, [row.held_out for row in found.table], color="#2b6cb0", marker="o", markersize=3)
    ax.axvline(found.rank, color="#c05621", linewidth=1.2)
    ax.set_title(f"{name}: {answer}", fontsize=10)
    ax.set(xlabel="parts", xticks=range(2, 13, 2), yticks=[], xlim=(0.4, 12.6))
    ax.spines[["top", "right"]].set_visible(False)
figure.supylabel("held-out error", fontsize=10)
figure.savefig("how_many_parts.png", dpi=110)
