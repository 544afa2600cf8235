"""
Contacts in a school
====================

Contacts over two days: counts of person x person x time come apart into classes and breaks.

Each component says who met (the first two modes, which agree: a contact has two sides) and when. Counts call for KL,
and the tensor is sparse: 1.5% of its entries are not 0. Reads the contacts of a primary school in Lyon, where 242
people wore sensors on 1 and 2 October 2009, where they are at hand, see `datasets.local_archive` (SocioPatterns, CC
BY-NC-SA 3.0; J. Stehle et al., High-resolution measurements of face-to-face contact patterns in a primary school, PLoS
ONE 6(8), 2011; as a tensor of rank 13: L. Gauvin, A. Panisson, C. Cattuto, PLoS ONE 9(1), 2014); otherwise a generated
school stands in. Writes school_contacts.png: the classes of each component, and its activity over the two days.
"""

import numpy as np
from matplotlib.figure import Figure

import partwise as pw


def read_school(path):
    """The tensor, the class of each person, and the hour and the day of each time."""
    with np.load(path) as file:
        coords, counts, shape = file["coords"].astype(int), file["counts"].astype(float), tuple(file["shape"].tolist())
        T = pw.SparseTensor(np.vstack([coords, coords[:, [1, 0, 2]]]), np.tile(counts, 2), shape)
        day, seconds = np.divmod(file["bin_start"], 24 * 3600)
        return T, file["person_class"], seconds / 3600, day


def generate():
    contacts = pw.datasets.make_contacts(random_state=0)
    labels = np.array([f"class {group + 1}" for group in contacts.groups])
    times = np.arange(contacts.shape[2])
    return contacts.X, labels, 8.5 + times % 20 / 2.5, times // 20


path = pw.datasets.local_archive("primary_school")
if path is None:
    print("primary_school.npz is not here (set PARTWISE_DATA to its folder): a generated school stands in")
T, labels, hours, days = generate() if path is None else read_school(path)
print(T)

rank = 6 if path is None else 13
modes = {"person": labels, "other person": labels, "hour": hours + 24 * days}
result = pw.factorize(T, rank, loss="kl", init="random", n_init=20, modes=modes, random_state=0)
print(result)
people, others, activity = result.factors
contacts = people * others.sum(axis=0) * activity.sum(axis=0)  # of each person, by component

classes = np.unique(labels)
share = np.array([contacts[labels == name].sum(axis=0) for name in classes])  # of each class in the components
share /= share.sum(axis=0)
within = share.max(axis=0) > 0.5  # components that are mostly one class; in the others classes mix
home = classes[share.argmax(axis=0)]
found = home[np.where(within, contacts, -1).argmax(axis=1)]  # where each person has most contacts of that kind
pupils = labels != "Teachers"
agreement = np.mean(found[pupils] == labels[pupils])
print(f"{within.sum()} of {rank} components are mostly one class, the others mix several")
print(f"{agreement:.1%} of the pupils have most of their contacts in the component of their own class")

order = np.lexsort((-contacts.sum(axis=0), np.where(within, share.argmax(axis=0), len(classes))))
# %%
# Who belongs to each component, and when it is active.
figure = Figure(figsize=(12, 0.9 + 0.42 * rank), layout="constrained")
who, *when = figure.subplots(1, 1 + len(np.unique(days)), width_ratios=[1.1, *(1 for _ in np.unique(days))])
who.imshow(share[:, order].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
for (row, column), value in np.ndenumerate(share[:, order].T):
    if value >= 0.05:
        colour = "white" if value > 0.6 else "black"
        who.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=8, color=colour)
who.set_xticks(np.arange(len(classes)), [name.replace("Teachers", "staff") for name in classes])
who.set_yticks(np.arange(rank), [f"class {home[k].removeprefix('class ')}" if within[k] else "mixed" for k in order])
who.set_title("who: % of each class in a component")
curves = activity[:, order] / activity.max(axis=0)[order]
for day, ax in enumerate(when):
    at = days == day
    if path is not None:
        ax.axvspan(12, 14, color="0.93", linewidth=0)
        ax.text(13, 0, "lunch", ha="center", va="center", fontsize=9, color="0.4")
    for row, k in enumerate(order):
        colour = "#2b6cb0" if within[k] else "#c05621"
        height = row + 0.45 - 0.9 * curves[at, row]
        ax.fill_between(hours[at], row + 0.45, height, color=colour, alpha=0.35, linewidth=0)
        ax.plot(hours[at], height, color=colour, linewidth=1)
    ax.set(ylim=(rank - 0.5, -0.5), yticks=[], xlim=(hours.min(), hours.max()), xlabel="hour of the day")
    ax.set_title(f"when: activity on day {day + 1}")
    ax.spines[["top", "right", "left"]].set_visible(False)
figure.savefig("school_contacts.png", dpi=110)

assert np.unique(home[within]).size == np.unique(labels[pupils]).size  # every class has a component
assert agreement > 0.95
