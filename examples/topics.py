"""
Topics of documents
===================

Word counts are taken apart by KL, the likelihood of Poisson counts.

Reads classic3 (abstracts on aerodynamics, libraries and medicine) where it is at hand, see `datasets.local_archive`;
otherwise a generated corpus stands in. Writes topics.png: the words of each topic, and where it is used.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

import partwise as pw

COLLECTIONS = ["medicine", "libraries", "aerodynamics"]


def read_classic3(path):
    with np.load(path) as file:
        terms, labels = file["terms"].astype(str), file["labels"]
    return sparse.load_npz(path).astype(float), terms, labels


def generate():
    """Documents of three kinds, each with two topics of their own; the words of a topic follow Zipf's law."""
    rng = np.random.default_rng(0)
    themes = ["cell blood tissue growth", "patient dose drug trial", "index book reader shelf"]
    themes += ["query term search rank", "wing lift drag flow", "heat shock layer plate"]
    seeds = [theme.split() for theme in themes]
    terms = np.array(
        [f"{word}{suffix}" for words in seeds for suffix in ["", "s", "ing", "ed", "er"] for word in words]
    )
    topics = np.full((6, terms.size), 1e-4)
    for k in range(6):
        topics[k, 20 * k : 20 * (k + 1)] += 1 / np.arange(1, 21)
    topics /= topics.sum(axis=1, keepdims=True)
    labels = rng.integers(3, size=900)
    mixture = np.full((900, 6), 0.05)
    for k in range(2):
        mixture[np.arange(900), 2 * labels + k] += rng.gamma(1.0, size=900)
    return sparse.csr_array(rng.poisson(60 * mixture @ topics).astype(float)), terms, labels


path = pw.datasets.local_archive("classic3")
if path is None:
    print("classic3.npz is not here (set PARTWISE_DATA to the folder that holds it): a generated corpus stands in")
X, terms, labels = generate() if path is None else read_classic3(path)

model = pw.NMF(n_components=6 if path is None else 9, loss="kl", init="random", n_init=3, random_state=0)
W = model.fit_transform(X)
topics = model.components_ / model.components_.sum(axis=1, keepdims=True)  # the share of each word in a topic
mass = W * model.components_.sum(axis=1)  # the words of a document that each topic explains
print(model.result_)
print(model.result_.certificate)

use = np.array([mass[labels == label].sum(axis=0) for label in range(3)])
use /= use.sum(axis=0)
order = np.lexsort((-mass.sum(axis=0), use.argmax(axis=0)))
# %%
# The words that weigh most in each topic.
figure = Figure(figsize=(11, 2.6 * (order.size // 3)), layout="constrained")
for ax, k in zip(figure.subplots(order.size // 3, 3).flat, order, strict=True):
    top = np.argsort(-topics[k])[:8]
    ax.barh(np.arange(8), topics[k, top], color=["#2b6cb0", "#c2410c", "#15803d"][int(use[:, k].argmax())])
    ax.set_yticks(np.arange(8), terms[top])
    ax.locator_params(axis="x", nbins=4)
    ax.invert_yaxis()
    ax.set_title(f"{use[:, k].max():.0%} of its words in {COLLECTIONS[int(use[:, k].argmax())]}", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig("topics.png", dpi=110)

main = use[:, mass.argmax(axis=1)].argmax(axis=0)  # the collection of each document's main topic
accuracy = np.mean(main == labels)
print(f"the main topic tells the collection of {accuracy:.1%} of the documents")
assert accuracy > 0.9
