"""
Known ingredients
=================

Two parts are known, the others are learnt: unmix spectra of which some ingredients are on the shelf.

Writes known_parts.png: the planted spectra and what was found.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s

rng = np.random.default_rng(0)
wavelength = np.linspace(0, 1, 200)
peaks = [(0.2, 0.04), (0.35, 0.06), (0.6, 0.05), (0.8, 0.03)]
spectra = np.array([np.exp(-(((wavelength - c) / w) ** 2)) for c, w in peaks])
amounts = rng.dirichlet(np.ones(4), size=120)
X = np.maximum(amounts @ spectra + 0.01 * rng.standard_normal((120, 200)), 0)

result = pw.factorize(
    X,
    4,
    structure_H=s.NonNegative() & s.Fixed(spectra[:2]),  # the first two parts are held, the others are free
    init="random",
    n_init=5,
    random_state=0,
)
found = result.H[2:]
print(result)
print(result.certificate)

order = [int(np.argmax([np.corrcoef(part, known)[0, 1] for part in found])) for known in spectra[2:]]
# %%
# The two parts that were learnt, beside the planted ones.
figure = Figure(figsize=(8, 3), layout="constrained")
axes = figure.subplots(1, 2, sharey=True)
for ax, k in zip(axes, (0, 1), strict=True):
    part = found[order[k]]
    ax.plot(wavelength, spectra[2 + k], color="0.7", linewidth=4, label="planted")
    ax.plot(wavelength, part / part.max(), color="#2b6cb0", label="found")
    ax.set(title=f"unknown part {k + 1}", xlabel="wavelength")
    ax.legend(frameon=False)
figure.savefig("known_parts.png", dpi=120)

match = [np.corrcoef(found[order[k]], spectra[2 + k])[0, 1] for k in (0, 1)]
print("correlation with the planted spectra:", np.round(match, 4))
assert min(match) > 0.99
