"""
Animals in 0/1 parts
====================

One-hot data in 0/1 parts: each part is a set of animals that share a set of attributes.

Reads the zoo data (101 animals, 21 attributes) where they are at hand, see `datasets.local_archive`; otherwise a
generated table stands in. Writes animals.png: the table, its parts, and what they do not explain.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s


def read_zoo(path):
    with np.load(path) as file:
        return file["binary"].astype(float), file["attribute"].astype(str), file["type"] - 1


def generate():
    tiles = pw.datasets.make_binary_parts(100, 20, 4, share=0.35, flips=0.02, random_state=1)
    return tiles.X, np.array([f"attribute {j}" for j in range(20)]), tiles.W.argmax(axis=1)


path = pw.datasets.local_archive("zoo")
if path is None:
    print("zoo.npz is not here (set PARTWISE_DATA to the folder that holds it): a generated table stands in")
X, attributes, kinds = generate() if path is None else read_zoo(path)

rank = 4 if path is None else 6
result = pw.factorize(X, rank, loss="l1", structure_W=s.Binary(), structure_H=s.Binary(), n_init=50, random_state=0)
added, either = result.certificate.disagreements
print(result)
print(f"of {X.size} entries {added} are not explained; {either} if what two parts explain counts once")
for k in range(rank):
    print(f"part {k}: {int(result.W[:, k].sum())} rows with {', '.join(attributes[result.H[k] > 0]) or 'nothing'}")

order = np.lexsort([kinds, *result.W.T[::-1]])
# %%
# The table in the order of its parts, what they add up to, and what they do not explain.
figure = Figure(figsize=(12, 6), layout="constrained")
for ax, title, image in zip(
    figure.subplots(1, 3, sharey=True),
    ("the table", "its 0/1 parts, added up", "the difference"),
    (X, result.W @ result.H, X - result.W @ result.H),
    strict=True,
):
    ax.imshow(image[order], cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto", interpolation="nearest")
    ax.set(title=title, yticks=[], xticks=np.arange(len(attributes)))
    ax.set_xticklabels(attributes, rotation=90, fontsize=8)
figure.savefig("animals.png", dpi=110)
assert either < 0.15 * X.size
