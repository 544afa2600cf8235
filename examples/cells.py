"""
Programs of cells
=================

Counts of genes in single cells by KL: each part is a gene expression program, and a cell uses several.

Reads the PBMC 3k of 10x Genomics where they are at hand, see `datasets.local_archive` (2700 blood cells; CC BY 4.0);
otherwise generated cells of ten kinds stand in. Writes cells.png: the programs that each kind of cell uses.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

import partwise as pw


def read_pbmc(path):
    """Counts of the genes that at least 100 cells have, names of genes, and the kind of each cell that has one."""
    with np.load(path) as file:
        genes, kinds = file["gene"].astype(str), file["cell_type"].astype(str)
    X = sparse.load_npz(path).astype(float).tocsr()[kinds != "nan"]
    common = np.asarray((X > 0).sum(axis=0)).ravel() >= 100
    return X[:, common], genes[common], kinds[kinds != "nan"]


def generate(kinds=10, cells=60, genes=300):
    """Every kind has a program of its own beside one that all cells use, and cells differ in depth."""
    rng = np.random.default_rng(0)
    programs = np.zeros((kinds, genes))
    for k in range(kinds):
        programs[k, 20 * k : 20 * (k + 1)] = rng.gamma(1.0, size=20)
    everywhere = rng.gamma(0.3, size=genes)
    labels = np.repeat(np.arange(kinds), cells)
    means = rng.gamma(5.0, 0.5, size=(labels.size, 1)) * (programs[labels] + 0.5 * everywhere)
    names = np.array([f"{'abcdefghij'[j // 20]}{j % 20}" if j < 20 * kinds else f"g{j}" for j in range(genes)])
    return sparse.csr_matrix(rng.poisson(means).astype(float)), names, np.array([f"kind {k}" for k in labels])


path = pw.datasets.local_archive("pbmc3k")
if path is None:
    print("pbmc3k.npz is not here (set PARTWISE_DATA to the folder that holds it): generated cells stand in")
X, genes, kinds = generate() if path is None else read_pbmc(path)

# %%
# Raw counts go in. With `normalize=("H", "l1")` each program adds up to 1, and W counts molecules.
rank = 11 if path is None else 8
result = pw.factorize(X, rank, loss="kl", init="random", n_init=3, normalize=("H", "l1"), random_state=0)
print(result)
shares = result.W / result.W.sum(axis=1, keepdims=True)
labels = np.unique(kinds)
use = np.array([shares[kinds == label].mean(axis=0) for label in labels])

# %%
# Genes are listed by how well they tell a program from the one most like it.
specific = np.array(
    [
        np.min([p * np.log((p + 1e-9) / (q + 1e-9)) - p + q for q in np.delete(result.H, k, axis=0)], axis=0)
        for k, p in enumerate(result.H)
    ]
)
top = [", ".join(genes[np.argsort(-row)[:3]]) for row in specific]
for k, names in enumerate(top):
    print(f"program {k + 1}: {names}; most of it in {labels[use[:, k].argmax()]}")

figure = Figure(figsize=(9, 5), layout="constrained")
ax = figure.subplots()
image = ax.imshow(use, cmap="Blues", vmin=0, aspect="auto")
ax.set_xticks(np.arange(rank), top, rotation=40, ha="right", fontsize=8)
ax.set_yticks(np.arange(len(labels)), labels)
for (i, k), value in np.ndenumerate(use):
    if value >= 0.05:
        ax.text(
            k, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=8, color="white" if value > 0.45 else "black"
        )
ax.set_title("% of the counts of a cell that each program explains, by kind of cell")
figure.colorbar(image, ax=ax, shrink=0.8)
figure.savefig("cells.png", dpi=110)
assert np.median(use.max(axis=1)) > (0.5 if path is None else 0.4)
