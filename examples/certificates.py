"""
Certificates on a matrix of 5 x 5
=================================

What is certain of a factorization, on a matrix that is small enough to look at: whether the factors are feasible,
whether the run has converged, how far the fit is from the best possible, and what one more part could gain.

Writes certificates.png.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw

X = np.array(
    [
        [4.0, 4.0, 0.0, 0.0, 1.0],
        [4.0, 4.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 3.0, 3.0, 0.0],
        [0.0, 1.0, 3.0, 3.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 2.0],
    ]
)
result = pw.factorize(X, 2, init="random", n_init=10, tol=1e-8, random_state=0)

# %%
# **Feasible** and **stationary** come with every result. No factor is negative, and no component can be improved alone.
print(result.certificate)

# %%
# **The bound.** The singular values of X say how close any matrix of rank 2 can come: the root of the sum of the
# squares of those left out. `certify` computes this, with a margin for rounding.
singular = np.linalg.svd(X, compute_uv=False)
least = np.sqrt(np.sum(singular[2:] ** 2)) / np.linalg.norm(X)
print("singular values:", singular.round(2))
print(f"least relative error of rank 2: {least:.4f}; of the parts found: {result.relative_error:.4f}")
certificate = result.certify(X, one_more=True)
print(certificate)

# %%
# **One more part.** With these two held, the best third part is a pair of nonnegative unit vectors u and v with the
# largest `u' P v`, where P is what is left of X. It gains half of the square. Oracle and bound agree here: no part
# gains more. A fit of three parts from scratch may gain more than that, since it may also move the first two.
left = X - result.W @ result.H
atom = pw.oracles.rank_one(-left)
print(f"the best third part gains {atom.value**2 / 2:.3f}, no part more than {atom.bound**2 / 2:.3f} ({atom.status})")
three = pw.factorize(X, 3, init="random", n_init=10, tol=1e-8, random_state=0)
print(f"three parts from scratch gain {result.fit - three.fit:.3f}")

figure = Figure(figsize=(11, 2.9), layout="constrained")
shown = {
    "X": X,
    "two parts": result.W @ result.H,
    "what is left, P": left,
    "the best third part": -atom.value * np.outer(atom.u, atom.v),
}
axes = figure.subplots(1, 5, width_ratios=[1, 1, 1, 1, 1.3])
for ax, (title, matrix) in zip(axes, shown.items(), strict=False):
    ax.imshow(matrix, cmap="RdBu_r", vmin=-4, vmax=4)
    for (i, j), value in np.ndenumerate(matrix):
        if abs(value) >= 0.05:
            ax.text(
                j, i, f"{value:.1f}", ha="center", va="center", fontsize=8, color="white" if value > 2.5 else "black"
            )
    ax.set(title=title, xticks=[], yticks=[])
ranks = np.arange(1, 5)
errors = [pw.factorize(X, k, init="random", n_init=10, tol=1e-8, random_state=0).relative_error for k in ranks]
bounds = [np.sqrt(np.sum(singular[k:] ** 2)) / np.linalg.norm(X) for k in ranks]
axes[4].plot(ranks, errors, marker="o", color="#2b6cb0", label="found, nonnegative")
axes[4].plot(ranks, bounds, marker="s", color="0.5", linestyle="--", label="best of any sign")
axes[4].set(title="relative error", xlabel="parts", xticks=ranks, ylim=0)
axes[4].legend(frameon=False, fontsize=8)
axes[4].spines[["top", "right"]].set_visible(False)
figure.savefig("certificates.png", dpi=110)
assert certificate.bound <= result.relative_error
assert atom.status == "closed"
