"""
Mutational signatures
=====================

The catalogues of tumours, 96 kinds of mutation each, as Poisson counts of a few processes.

Reads 21 breast cancer genomes and the COSMIC reference signatures where they are at hand, see
`datasets.local_archive`; otherwise generated catalogues stand in. Writes mutational_signatures.png: what was found, and
the reference signature that is most like it.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw

BASES = "ACGT"
KINDS = ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"]
COLOURS = ["#1ebff0", "#050708", "#e62725", "#cbcacb", "#a1cf64", "#edc8c5"]
CHANNELS = [f"{a}[{kind}]{b}" for kind in KINDS for a in BASES for b in BASES]


def read(counts, reference):
    """Catalogues (samples x 96), reference signatures (signatures x 96) and their names, in the order of CHANNELS."""
    with np.load(counts) as file:
        order = np.argsort([CHANNELS.index(channel) for channel in file["channels"]])
        X = file["counts"][order].T.astype(float)
    with np.load(reference) as file:
        order = np.argsort([CHANNELS.index(channel) for channel in file["channels"]])
        return X, file["signatures_v3_4"][order].T, file["names_v3_4"].astype(str)


def generate():
    """40 catalogues of four made-up processes, among twelve that could have been."""
    rng = np.random.default_rng(0)
    reference = rng.dirichlet(np.full(96, 0.15), size=12)
    exposures = rng.gamma(0.7, 3000, size=(40, 4))
    return (
        rng.poisson(exposures @ reference[:4]).astype(float),
        reference,
        np.array([f"made up {k}" for k in range(12)]),
    )


paths = [pw.datasets.local_archive(name) for name in ("breast21", "cosmic_sbs")]
if None in paths:
    print("breast21.npz and cosmic_sbs.npz are not here (set PARTWISE_DATA): generated catalogues stand in")
X, reference, names = generate() if None in paths else read(*paths)

result = pw.factorize(X, 4, loss="kl", init="random", n_init=20, normalize=("H", "l1"), random_state=0)
print(result)
print(result.certificate)


def unit(M):
    return M / np.linalg.norm(M, axis=1, keepdims=True)


cosine = unit(result.H) @ unit(reference).T
# %%
# Each signature, with the reference most like it as dots.
figure = Figure(figsize=(11, 8), layout="constrained")
for ax, signature, match, share in zip(
    figure.subplots(4, 1), result.H, cosine, result.W.sum(axis=0) / X.sum(), strict=True
):
    nearest = int(match.argmax())
    ax.bar(np.arange(96), signature, color=np.repeat(COLOURS, 16))
    ax.plot(np.arange(96), reference[nearest], ".", color="0.35", markersize=3)
    ax.set_title(
        f"{share:.0%} of the mutations, like {names[nearest]} (dots): cosine {match[nearest]:.2f}", fontsize=10
    )
    ax.set_xticks(np.arange(8, 96, 16), KINDS)
    ax.set_xlim(-1, 96)
    ax.spines[["top", "right"]].set_visible(False)
    print(f"{names[nearest]}: cosine {match[nearest]:.3f}, {share:.0%} of the mutations")
figure.savefig("mutational_signatures.png", dpi=110)

best = cosine.max(axis=1)
assert best.min() > (0.95 if None in paths else 0.7)
