"""
Groups, one at a time
=====================

Groups of a network, one at a time: how many are there, and who is in them?

The adjacency matrix is taken apart as `A A'` without its diagonal, greedily, so that one run shows what every number of
groups is worth. Reads the football network (teams that met in the season of 2000, by conference) where it is at hand,
see `datasets.local_archive`; otherwise a generated network stands in. Writes groups_one_at_a_time.png: error against
the number of groups, and the network in the order of the groups found.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw


def read_football(path):
    with np.load(path) as file:
        return file["football"].astype(float), np.unique(file["football_conference"], return_inverse=True)[1]


def generate(groups=6, size=15):
    """Groups whose members mostly know each other, and others seldom."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(groups), size)
    upper = np.triu(rng.uniform(size=(len(labels),) * 2) < np.where(labels[:, None] == labels, 0.7, 0.05), 1)
    return (upper | upper.T).astype(float), labels


path = pw.datasets.local_archive("small_graphs")
if path is None:
    print("small_graphs.npz is not here (set PARTWISE_DATA to the folder that holds it): a generated network stands in")
network, labels = generate() if path is None else read_football(path)

most = 16 if path is not None else 9
result = pw.factorize(network, most, symmetric="off-diagonal", solver=pw.solvers.Greedy(keep=True), random_state=0)
for step in result.path:
    print(step)

# where a group gains much less than the one before, groups are over and noise begins (the first only fits the density)
gains = np.array([step.gain for step in result.path])
rank = int(np.argmin(gains[2:] / gains[1:-1])) + 2
A = result.path[rank - 1].W
group = A.argmax(axis=1)
homes = np.array([np.bincount(labels[group == k], minlength=labels.max() + 1) for k in range(rank)])
purity = homes.max(axis=1).sum() / len(labels)
print(f"{rank} groups; {purity:.0%} are in a group where most share their label")

# %%
# The error falls quickly up to the number of groups, and slowly beyond it.
figure = Figure(figsize=(11, 4.6), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
left.plot([step.rank for step in result.path], [step.relative_error for step in result.path], marker="o", markersize=4)
left.axvline(rank, color="#c05621", linewidth=1, linestyle="--")
left.set(title="relative error, off the diagonal", xlabel="groups")
left.spines[["top", "right"]].set_visible(False)
order = np.lexsort((labels, group))
right.imshow(network[np.ix_(order, order)], cmap="gray_r", interpolation="nearest")
right.set(title=f"the network in the order of {rank} groups", xticks=[], yticks=[])
figure.savefig("groups_one_at_a_time.png", dpi=110)
assert purity > 0.8
