"""Programs of single cells: what is written where, in terms that scanpy's tools and .h5ad files take."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import partwise as pw

anndata = pytest.importorskip("anndata", reason="anndata is not installed")

RANK = 3


def counts(seed=0, n_cells=60, n_genes=40):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.5, size=(n_cells, RANK)) @ (4 * rng.gamma(0.3, size=(RANK, n_genes)))).astype(float)


@pytest.fixture
def adata():
    X = counts()
    made = anndata.AnnData(sparse.csr_matrix(X), layers={"counts": sparse.csr_matrix(X), "log": np.log1p(X)})
    made.obs_names = [f"cell {i}" for i in range(made.n_obs)]
    made.var_names = [f"gene {j}" for j in range(made.n_vars)]
    made.var["chosen"] = np.arange(made.n_vars) % 3 > 0
    return made


def test_is_the_fit_of_factorize_and_survives_a_file(adata, tmp_path):
    assert pw.sc.nmf(adata, RANK, tol=1e-6) is None
    result = pw.factorize(adata.X, RANK, loss="kl", normalize=("H", "l1"), tol=1e-6, random_state=0)
    assert np.array_equal(adata.obsm["X_nmf"], result.W)
    assert np.array_equal(adata.varm["nmf_loadings"], result.H.T)
    assert adata.varm["nmf_loadings"].sum(axis=0) == pytest.approx(np.ones(RANK))
    # with KL the weights of a cell add up to its counts
    assert adata.obsm["X_nmf"].sum(axis=1) == pytest.approx(np.asarray(adata.X.sum(axis=1)).ravel(), rel=1e-2, abs=1e-2)

    adata.write_h5ad(tmp_path / "cells.h5ad")
    about = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["nmf"]
    assert about["params"]["n_components"] == RANK
    assert about["params"]["loss"] == "KL()"
    assert about["params"]["random_state"] == 0
    assert about["params"]["tol"] == 1e-6
    assert about["explained"] == result.explained
    assert about["certificate"] == str(result.certificate)
    assert about["version"] == pw.__version__
    assert about["fingerprint"] == result.provenance.data["fingerprint"]
    assert about["shares"] == pytest.approx(result.shares)


@pytest.mark.parametrize("settings", [{"n_init": 2, "init": "random"}, {"structure_H": "nonnegative & l1(0.1)"}])
def test_whatever_is_stated_can_be_written(adata, tmp_path, settings):
    pw.sc.nmf(adata, RANK, random_state=np.random.default_rng(3), weights=(np.ones(adata.n_obs), None), **settings)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    params = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["nmf"]["params"]
    assert set(settings) < set(params)


def test_layer_key_and_copy(adata):
    found = pw.sc.nmf(adata, 2, layer="counts", key_added="programs", copy=True)
    assert "X_programs" not in adata.obsm
    assert found.obsm["X_programs"].shape == (adata.n_obs, 2)
    assert found.varm["programs_loadings"].shape == (adata.n_vars, 2)
    assert found.uns["programs"]["params"]["layer"] == "counts"
    assert sparse.issparse(found.layers["counts"])


def test_genes_that_are_left_out_have_loadings_of_0(adata):
    chosen = adata.var["chosen"].to_numpy()
    result = pw.factorize(adata.X[:, chosen], RANK, loss="kl", normalize=("H", "l1"), random_state=0)
    for mask, told in (("chosen", "chosen"), (chosen, "array")):
        pw.sc.nmf(adata, RANK, mask_var=mask)
        assert np.array_equal(adata.varm["nmf_loadings"][chosen], result.H.T)
        assert not adata.varm["nmf_loadings"][~chosen].any()
        assert adata.uns["nmf"]["params"]["mask_var"] == told
    adata.var["highly_variable"] = chosen
    pw.sc.nmf(adata, RANK)
    assert np.array_equal(adata.obsm["X_nmf"], result.W)
    assert adata.uns["nmf"]["params"]["mask_var"] == "highly_variable"
    pw.sc.nmf(adata, RANK, mask_var=None)
    assert "mask_var" not in adata.uns["nmf"]["params"]
    assert adata.varm["nmf_loadings"][~chosen].any()


def test_a_view_becomes_an_object_of_its_own(adata):
    view = adata[:30, 5:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # AnnData says that it copies
        pw.sc.nmf(view, 2)
    assert view.obsm["X_nmf"].shape == (30, 2)
    assert not view.is_view
    assert "X_nmf" not in adata.obsm


def test_new_cells_are_projected_by_the_names_of_genes(adata, tmp_path):
    pw.sc.nmf(adata, RANK, tol=1e-8, mask_var="chosen")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    reference = anndata.read_h5ad(tmp_path / "cells.h5ad")
    new = adata[:20, ::-1].copy()
    del new.obsm["X_nmf"]
    assert pw.sc.project(new, reference) is None
    assert new.obsm["X_nmf"] == pytest.approx(adata.obsm["X_nmf"][:20], rel=1e-3, abs=1e-3 * adata.obsm["X_nmf"].max())
    assert "X_nmf" in pw.sc.project(new, reference, layer="counts", copy=True).obsm
    with pytest.raises(ValueError, match="X lacks 10 of the 26 features that were fitted: 'gene 31'"):
        pw.sc.project(new[:, new.var_names < "gene 3"], reference)
    with pytest.raises(ValueError, match="there is no 'nmf' of partwise"):
        pw.sc.project(reference, anndata.AnnData(counts()))


def test_top_genes_by_weight_and_by_relevance():
    cells = np.kron(np.eye(2), np.ones((4, 1)))
    adata = anndata.AnnData(cells @ [[9.0, 3, 0, 10], [0, 0, 8, 10]])
    adata.var_names = ["CD3D", "CD3E", "MS4A1", "ACTB"]
    pw.sc.nmf(adata, 2)
    of_t = pw.sc.top_genes(adata, 3, relevance=1)
    assert of_t["part 1"].tolist() == ["ACTB", "CD3D", "CD3E"]
    assert pw.sc.top_genes(adata, 3, relevance=0.5)["part 1"].tolist()[0] == "CD3D"
    assert pw.sc.top_genes(adata, 9)["part 2"].tolist() == ["MS4A1", "ACTB", "", ""]


# -- what is refused, or warned of ---------------------------------------------------------------------------


def test_numbers_that_are_no_counts(adata):
    with pytest.warns(UserWarning, match=r"layers\['log'\] has numbers that are not whole.* pass layer='counts'"):
        pw.sc.nmf(adata, 2, layer="log")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pw.sc.nmf(adata, 2, layer="log", loss="frobenius")
        pw.sc.nmf(adata, 2)
    adata.X = adata.layers["log"] - 1
    with pytest.raises(ValueError, match=r"adata.X has negative entries, down to -1, .* pass layer='counts'"):
        pw.sc.nmf(adata, 2)


WRONG = {
    "layer": ({"layer": "count"}, "no layer 'count', it has counts, log"),
    "column": ({"mask_var": "hvg"}, "no column 'hvg' to take genes by: it has chosen"),
    "mask": ({"mask_var": np.ones(3, bool)}, r"one bool for each of the 40 genes.* got an array of shape \(3,\)"),
    "nothing": ({"mask_var": np.zeros(40, bool)}, "no gene at all"),
    "key": ({"key_added": "a/b"}, "text without '/'"),
}


@pytest.mark.parametrize(("stated", "sentence"), WRONG.values(), ids=WRONG)
def test_wrong_requests(adata, stated, sentence):
    with pytest.raises(ValueError, match=sentence):
        pw.sc.nmf(adata, 2, **stated)
    assert not adata.obsm


def test_what_is_no_annotated_matrix_in_memory(adata, tmp_path):
    with pytest.raises(TypeError, match="must be an AnnData object, got one of type ndarray"):
        pw.sc.nmf(counts(), 2)
    adata.raw = adata
    with pytest.raises(TypeError, match=r"pass adata.raw.to_adata\(\)"):
        pw.sc.nmf(adata.raw, 2)
    del adata.raw
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for call in (pw.sc.nmf, pw.factorize, lambda X, rank: pw.NMF(rank).fit(X)):
        with pytest.raises(ValueError, match=r"in a file: pass \w+.to_memory\(\)"):
            call(backed, 2)
    backed.file.close()


def test_an_object_without_x_names_its_layers(adata):
    bare = anndata.AnnData(layers={"counts": adata.X, "other": adata.X})
    for call in (pw.factorize, lambda X, rank: pw.NMF(rank).fit(X)):
        with pytest.raises(ValueError, match=r"pass a layer, such as X.layers\['counts'\] \(there are counts, other\)"):
            call(bare, 2)
    pw.sc.nmf(bare, 2, layer="other")
    assert bare.obsm["X_nmf"].shape == (60, 2)
