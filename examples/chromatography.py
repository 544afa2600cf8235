"""
Overlapping peaks
=================

Overlapping peaks of a chromatogram: each substance comes out with one peak, and has a smooth spectrum.

Generated data: three substances, recorded at 120 times and 80 wavelengths. Nonnegative factors may still be mixtures;
stated shapes pull the substances apart. Writes chromatography.png.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from partwise import structures as s


def bell(x, centre, width):
    return np.exp(-(((x - centre) / width) ** 2))


def likeness(found, truth):
    """The mean cosine of true profiles with the most similar one found."""
    found, truth = (A / np.linalg.norm(A, axis=0) for A in (found, truth))
    return float((truth.T @ found).max(axis=1).mean())


times, wavelengths = np.linspace(0, 1, 120), np.linspace(0, 1, 80)
profiles = np.stack([bell(times, c, w) for c, w in ((0.38, 0.12), (0.5, 0.14), (0.6, 0.11))], axis=1)
spectra = np.stack(
    [
        0.3 + bell(wavelengths, 0.3, 0.15) + 0.6 * bell(wavelengths, 0.8, 0.1),
        0.3 + bell(wavelengths, 0.45, 0.2),
        0.3 + 0.7 * bell(wavelengths, 0.2, 0.1) + bell(wavelengths, 0.65, 0.15),
    ]
)
X = np.maximum(profiles @ spectra + np.random.default_rng(0).normal(scale=0.1, size=(120, 80)), 0)

stated = {
    "nonnegative": (s.NonNegative(), s.NonNegative()),
    # bounded profiles: or spectra could shrink until their roughness costs nothing
    "one peak, smooth": (s.Box(0, 1) & s.Unimodal(), s.NonNegative() & s.Smooth(2.0)),
}
results = {
    name: pw.factorize(X, 3, structure_W=W, structure_H=H, n_init=4, init="random", random_state=0)
    for name, (W, H) in stated.items()
}

# %%
# Elution profiles: the true ones, and those found without and with the shapes stated.
figure = Figure(figsize=(11, 3), layout="constrained")
for ax, (name, W) in zip(
    figure.subplots(1, 3, sharex=True),
    [("truth", profiles), *((name, result.W) for name, result in results.items())],
    strict=True,
):
    ax.plot(times, (W / W.max(axis=0))[:, np.argsort(W.argmax(axis=0))])  # in the order of their peaks
    ax.set(title=f"{name}: likeness {likeness(W, profiles):.3f}", xlabel="time")
figure.savefig("chromatography.png", dpi=110)
for name, result in results.items():
    print(f"{name}: mean likeness of profiles {likeness(result.W, profiles):.3f}; {result.status}")
plain, shaped = (likeness(result.W, profiles) for result in results.values())
assert shaped > max(plain, 0.95)
