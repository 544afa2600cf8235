"""
Ratings with holes
==================

Films rated by people with five tastes; one rating in six is known. Zeros taken for ratings spoil the model, taken for
unknown they are predicted at the level of the noise.

Generated data. Writes ratings.png.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

import partwise as pw
from partwise import structures as s

rng = np.random.default_rng(0)
tastes = 1 + 4 * rng.beta(0.7, 0.7, size=(5, 150))
truth = rng.dirichlet(np.full(5, 0.3), size=400) @ tastes
full = np.clip(np.round(truth + 0.4 * rng.normal(size=truth.shape)), 1, 5)  # whole stars
seen = rng.uniform(size=full.shape) < 1 / 6
ratings = sparse.csr_array(np.where(seen, full, 0))
print(f"{ratings.nnz} ratings of {full.size} are known")

# %%
# How many tastes? Hide some of the known ratings, and predict them. A penalty on both factors helps where a person has
# rated little.
penalty = s.NonNegative() & s.L2(1.0)
words = {"structure_W": penalty, "structure_H": penalty, "missing": "zeros", "random_state": 0}
held = pw.holdout(ratings, share=0.1, missing="zeros")
settings = {key: value for key, value in words.items() if key != "missing"}
errors = {rank: held.score(held.fit(rank, **settings)).error for rank in range(1, 10)}
best = min(errors, key=errors.get)
for rank, error in errors.items():
    print(f"{rank} tastes: hidden ratings are off by {error:.3f} stars")

# %%
# The same rank with zeros taken for ratings, for comparison.
model = pw.factorize(ratings, best, **words)
wrong = pw.factorize(ratings, best, random_state=0)
off = {
    name: float(np.sqrt(np.mean((result.reconstruct() - truth)[~seen] ** 2)))
    for name, result in (("unknown", model), ("a rating of 0", wrong))
}
print(", ".join(f"zeros are {name}: off by {error:.2f} stars" for name, error in off.items()))

figure = Figure(figsize=(11, 3.4), layout="constrained")
axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.2])
order = np.argsort(model.W.argmax(axis=1), kind="stable")[::4]
known = np.where(seen, full, np.nan)
shown = {"known ratings": known, "zeros are 0": wrong.reconstruct(), "zeros are unknown": model.reconstruct()}
for ax, (title, X) in zip(axes, shown.items(), strict=False):
    picture = ax.imshow(X[order][:, :60], cmap="viridis", vmin=0, vmax=5, aspect="auto", interpolation="nearest")
    ax.set(title=title, xticks=[], yticks=[], xlabel="films")
axes[0].set_ylabel("people")
figure.colorbar(picture, ax=axes[2], label="stars")
axes[3].plot(list(errors), list(errors.values()), marker="o", color="#2b6cb0")
axes[3].axvline(best, color="#c05621", linewidth=1)
axes[3].set(title="error of hidden ratings", xlabel="tastes", ylabel="stars")
axes[3].spines[["top", "right"]].set_visible(False)
figure.savefig("ratings.png", dpi=110)
assert 4 <= best <= 6
assert off["unknown"] < 0.3 * off["a rating of 0"]
