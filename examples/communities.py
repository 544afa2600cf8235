"""
Communities
===========

Groups in a network, which may overlap: its 0/1 matrix of who knows whom in 0/1 parts.

Reads the football network (teams that met in the season of 2000, by conference) where it is at hand, see
`datasets.local_archive`; otherwise a generated network stands in. Writes communities.png: the network in the order of
its groups, and the groups beside the known ones.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s


def read_football(path):
    with np.load(path) as file:
        return file["football"].astype(float), np.unique(file["football_conference"], return_inverse=True)[1]


def generate(groups=6, size=15):
    """Groups whose members mostly know each other, and others seldom; the last of each belongs to the next one too."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(groups), size)
    member = labels[:, None] == np.arange(groups)
    member[size - 1 :: size] |= np.roll(np.eye(groups, dtype=bool), 1, axis=1)
    chance = np.where(member @ member.T, 0.85, 0.04)
    upper = np.triu(rng.uniform(size=chance.shape) < chance, 1)
    return (upper | upper.T).astype(float), labels


path = pw.datasets.local_archive("small_graphs")
if path is None:
    print("small_graphs.npz is not here (set PARTWISE_DATA to the folder that holds it): a generated network stands in")
network, labels = generate() if path is None else read_football(path)
X = network + np.eye(len(network))  # every node is linked to itself, so that a group is a full square

rank = 6 if path is None else 11
result = pw.factorize(X, rank, loss="l1", structure_W=s.Binary(), structure_H=s.Binary(), n_init=20, random_state=0)
print(result)
print(result.certificate)
members = result.W.astype(bool) & result.H.T.astype(bool)  # in the group by both factors
homes = np.array([np.bincount(labels[group], minlength=labels.max() + 1) for group in members.T])
purity = homes.max(axis=1).sum() / homes.sum()
covered = members.any(axis=1).mean()
print(f"{covered:.0%} are in a group, {np.mean(members.sum(axis=1) > 1):.0%} in several; "
      f"{purity:.0%} of the members of a group share its main label")  # fmt: skip

group = np.where(members.any(axis=1), members.argmax(axis=1), rank)
order = np.lexsort((labels, group))
# %%
# The network in the order of its groups, and the groups beside the known ones.
figure = Figure(figsize=(11, 5), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
left.imshow(X[np.ix_(order, order)], cmap="gray_r", interpolation="nearest")
left.set(title="the network in the order of its groups", xticks=[], yticks=[])
right.imshow(homes, cmap="Blues", aspect="auto")
right.set(title="members of each group, by known label", xlabel="known label", ylabel="group found")
for (i, j), count in np.ndenumerate(homes):
    if count:
        right.text(
            j, i, count, ha="center", va="center", color="white" if count > homes.max() / 2 else "black", fontsize=8
        )
figure.savefig("communities.png", dpi=110)
assert purity > 0.8
