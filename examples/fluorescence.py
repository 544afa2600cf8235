"""
Fluorescence of mixtures
========================

What is in mixtures, how much of each, and the spectra, from five samples and no reference.

A solution is lit at one wavelength (excitation) and glows at others (emission). In weak solutions substances add up, so
that samples x emission x excitation is a CP model with one component for each of them, and the model is unique: no
rotation is left to choose. Reads the amino acids of Bro (1997), tryptophan, tyrosine and phenylalanine, where they are
at hand, see `datasets.local_archive` (free to use, to be cited: R. Bro, PARAFAC. Tutorial and applications,
Chemometrics and Intelligent Laboratory Systems 38); otherwise generated spectra stand in. Writes fluorescence.png.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw

COLOURS = ["#2b6cb0", "#c05621", "#2f855a"]


def read_amino(path):
    """The tensor, names and labels of its modes, true concentrations and the names of the substances."""
    with np.load(path) as file:
        X = np.maximum(file["X"], 0).astype(float)  # 1.4% of the entries are noise a little below 0
        modes = {
            "sample": ["Trp", "Tyr", "Phe", "mix 1", "mix 2"],
            "emission": file["emission_nm"],
            "excitation": file["excitation_nm"],
        }
        return X, modes, file["concentrations"], ["tryptophan", "tyrosine", "phenylalanine"]


def generate():
    planted = pw.datasets.make_fluorescence(random_state=0)
    return planted.X, planted.modes, planted.factors[0], ["substance 1", "substance 2", "substance 3"]


path = pw.datasets.local_archive("amino")
if path is None:
    print("amino.npz is not here (set PARTWISE_DATA to the folder that holds it): generated spectra stand in")
X, modes, truth, names = generate() if path is None else read_amino(path)

# how many substances? the core consistency is near 100 up to their number, and breaks down beyond it
results = {rank: pw.factorize(X, rank, modes=modes, tol=1e-6, random_state=0) for rank in range(1, 6)}
consistency = {rank: pw.metrics.core_consistency(X, result) for rank, result in results.items()}
for rank, percent in consistency.items():
    print(f"{rank} components: core consistency {percent:.1f}, relative error {results[rank].relative_error:.3f}")

result = results[3]
print(result)
print(pw.metrics.uniqueness(result))
amounts, emission, excitation = result.factors
correlations = np.corrcoef(truth.T, amounts.T)[:3, 3:]
order = correlations.argmax(axis=1)  # the component that is each substance
amounts, emission, excitation = (A[:, order] for A in (amounts, emission, excitation))
correlations = correlations.max(axis=1)
# components have no units: one number for each turns what was found into concentrations
found = amounts * (truth * amounts).sum(axis=0) / np.square(amounts).sum(axis=0)
for name, correlation in zip(names, correlations, strict=True):
    print(f"{name}: correlation of what was found with the true concentrations {correlation:.5f}")

# %%
# Spectra and amounts of the three substances, beside what was weighed in.
figure = Figure(figsize=(12, 6.6), layout="constrained")
(landscape, glow, light), (samples, scatter, core) = figure.subplots(2, 3)
nm_emission, nm_excitation = modes["emission"], modes["excitation"]
levels = landscape.contourf(nm_emission, nm_excitation, X[-1].T, levels=12, cmap="viridis")
figure.colorbar(levels, ax=landscape, label="intensity")
landscape.set(title="data: the last sample, a mixture", xlabel="emission (nm)", ylabel="excitation (nm)")
relative = found / truth.max(axis=0)
for k, (name, colour) in enumerate(zip(names, COLOURS, strict=True)):
    glow.plot(nm_emission, emission[:, k] / emission[:, k].max(), color=colour, label=name)
    light.plot(nm_excitation, excitation[:, k] / excitation[:, k].max(), color=colour)
    samples.bar(np.arange(len(X)) + 0.27 * (k - 1), relative[:, k], width=0.25, color=colour)
    scatter.scatter(
        truth[:, k] / truth[:, k].max(), relative[:, k], color=colour, s=45, marker="osD"[k], alpha=0.8,
        label=f"{name}, r = {correlations[k]:.4f}",
    )  # fmt: skip
glow.set(title="found: emission spectra", xlabel="emission (nm)", yticks=[], ylim=0, ylabel="intensity")
glow.legend(frameon=False, loc="upper right", handlelength=1, fontsize=9, borderaxespad=0)
light.set(title="found: excitation spectra", xlabel="excitation (nm)", yticks=[], ylim=0)
samples.set(title="found: how much is in each sample", ylabel="of the largest true amount")
samples.set_xticks(np.arange(len(X)), modes["sample"] or range(1, len(X) + 1))
scatter.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
scatter.set(title="found against true concentrations", xlabel="true, of the largest", ylabel="found")
scatter.legend(frameon=False, loc="upper left", fontsize=9)
shown = [max(percent, 0) for percent in consistency.values()]
core.bar(list(consistency), shown, color=["#2b6cb0" if rank == 3 else "#bee3f8" for rank in consistency])
for rank, height, percent in zip(consistency, shown, consistency.values(), strict=True):
    core.text(rank, height + 2, f"{percent:.1f}" if percent >= 0 else "below 0", ha="center", fontsize=9)
core.set(title="core consistency: three substances", xlabel="components", ylim=(0, 112), yticks=[0, 50, 100])
for ax in (glow, light, samples, scatter, core):
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig("fluorescence.png", dpi=110)

assert consistency[3] > 95
assert consistency[4] < 80
assert correlations.min() > 0.998
