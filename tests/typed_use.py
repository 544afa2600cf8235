"""How a program with types uses partwise: `mypy --strict` finds nothing to say of it. tests/test_types.py runs it."""

import numpy as np

import partwise as pw
from partwise import structures as s

planted = pw.datasets.make_parts(20, 12, 3, noise=0.05, random_state=0)
X: np.ndarray = planted.X

result: pw.Result = pw.factorize(
    X,
    3,
    loss=pw.losses.KL(),
    structure_W=s.NonNegative() & s.L1(0.1),
    structure_H="nonnegative",
    solver="auto",
    callbacks=[lambda record, factors: record.n_iter > 50],
    random_state=0,
)
error: float = result.relative_error
W, H = result.W, result.H
sentence: str = str(result.certify(X))
page = result.report("page.html", X=X)
result.save("result.partwise")
weights: np.ndarray = result.transform(X[:2])

STRUCTURES: list[s.Structure] = [
    s.Free(),
    s.L2(0.1),
    s.Elastic(0.1, 0.2),
    s.Box(0, 1),
    s.Binary(),
    s.Fixed(planted.H),
    s.Sparse(3, per="component"),
    s.EqualNonzeros(2),
    s.Pattern([2, 1], 1),
    s.UnitNorm(),
    s.Simplex(),
    s.Hoyer(0.5),
    s.GroupSparsity(sparsity=0.5),
    s.Orthogonal(),
    s.OrthogonalTo(0),
    s.Monotone(),
    s.Unimodal(),
    s.Smooth(1.0),
    s.Columns({0: s.Monotone()}),
    s.Projection(np.round),
]
LOSSES: list[pw.losses.Loss] = [pw.losses.Frobenius(), pw.losses.Beta(1.5), pw.losses.Huber(0.5), pw.losses.L1(0.3)]
SOLVERS: list[pw.solvers.Solver] = [pw.solvers.HALS(sweeps=2), pw.solvers.ADMM(), pw.solvers.Greedy(keep=True)]
STARTS: list[pw.init.Init] = [pw.init.Random(), pw.init.NNDSVD("mean"), pw.init.SPA()]

model = pw.NMF(n_components=3, loss="kl", random_state=0).fit(X)
codes: np.ndarray = model.fit_transform(X)
share: float = model.score(X)
model.transform(X)
pw.MiniBatchNMF(3).partial_fit(X)
pw.Dictionary(5, nonzeros=2).fit(X)
tensor = pw.datasets.make_cp((6, 5, 4), 2, random_state=0)
amounts: np.ndarray = pw.NTF(2).fit_transform(tensor.X)
pw.non_negative_factorization(X, n_components=3)

selection: pw.RankSelection = pw.select_rank(X, 5, loss="kl", method=pw.selection.Speckled(blocks=True))
rank: int = selection.rank
stable: pw.Stability = pw.stability(X, 3, n_runs=5, resample="rows")
held: pw.Holdout = pw.holdout(X, share=0.1)
score: float = held.score(held.fit(3)).error

table: pw.Table = pw.read("counts.csv")
names: list[str] | None = table.column_names
coords = np.array([[0, 1, 2]])
counts = pw.SparseTensor(coords, np.ones(1), shape=(2, 2, 3))
again = pw.load("result.partwise")
sparsities: np.ndarray = pw.metrics.sparsity(result.H)
match: float = pw.metrics.factor_match(result, (W, H))
unique: bool | None = pw.metrics.uniqueness(tensor.factors).unique
atom: pw.oracles.Atom = pw.oracles.rank_one(X - W @ H)
pw.sc.top_genes(None)
