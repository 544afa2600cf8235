"""Single cells: gene expression programs of an AnnData object, in and out as scanpy's tools have it.

`nmf` writes where `scanpy.tl` functions do; nothing here imports anndata or scanpy.

Examples
--------
>>> import anndata, numpy as np, partwise as pw
>>> rng = np.random.default_rng(0)
>>> adata = anndata.AnnData(rng.poisson(rng.gamma(0.5, size=(80, 3)) @ rng.gamma(0.3, size=(3, 50))).astype(float))
>>> pw.sc.nmf(adata, 3)
>>> list(adata.obsm), list(adata.varm), list(adata.uns)
(['X_nmf'], ['nmf_loadings'], ['nmf'])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from .checks import is_positive_int
from .data.names import columns_by_name, matrix_modes
from .data.validation import annotated_matrix, checked_data, is_annotated
from .errors import warn
from .factorize import factorize
from .io.write import part_names
from .losses import Loss
from .registry import resolve
from .result import Result
from .result.transform import for_new_rows, projected_rows
from .structures import NonNegative, Structure

__all__ = ["nmf", "project", "top_genes"]


def __dir__() -> list[str]:
    return sorted(__all__)


HIGHLY_VARIABLE = "highly_variable"  # the column of `adata.var` that scanpy's tools take by themselves
AUTO = "auto"
COUNTS = "counts"  # what the layer of counts is mostly called
LOADINGS = "loadings"


def nmf(  # noqa: PLR0913  # as scanpy's tools have it
    adata: Any,
    n_components: int,
    *,
    layer: str | None = None,
    loss: Any = "kl",
    mask_var: Any = AUTO,
    key_added: str = "nmf",
    normalize: Any = AUTO,
    random_state: Any = 0,
    copy: bool = False,
    **settings: Any,
) -> Any:
    """Gene expression programs of cells, by nonnegative matrix factorization: `X ~ W H`.

    Parameters
    ----------
    adata : AnnData
        Cells x genes, in memory.
    n_components : int
        Number of programs.
    layer : str, optional
        Layer to take in place of `adata.X`; for the default loss the one of counts.
    loss : str, number or Loss
        "kl" is the Poisson likelihood, for counts; all others of `partwise.factorize`.
    mask_var : str, array of bool, or None
        Genes to take: a column of `adata.var`, or one bool for each gene; None for all. "auto": those in
        `adata.var["highly_variable"]` if that is there, else all.
    key_added : str
        What the entries written are called.
    normalize : pair, str or None
        Where scale goes, as in `partwise.factorize`. "auto": every program adds up to 1 over genes, so that the weights
        of a cell say how many of its counts each program explains; "balanced" where structures are stated, which may
        fix the scale.
    random_state : int, RandomState, Generator or None
        The seed.
    copy : bool
        Whether to return a copy with the entries, and leave `adata` as it is.
    **settings
        What else `partwise.factorize` takes: `n_init`, `tol`, `structure_H`, `solver`, `time_limit`, ...

    Returns
    -------
    None, or AnnData where `copy`, with

    ``obsm["X_nmf"]`` : ndarray of shape (n_obs, n_components)
        The weights of programs in cells, W.
    ``varm["nmf_loadings"]`` : ndarray of shape (n_vars, n_components)
        The weights of genes in programs, H transposed; 0 for genes that were not taken.
    ``uns["nmf"]`` : dict
        `params`, how good the fit is (`relative_error`, `explained`, `shares` of programs), whether it is finished
        (`status`, `certificate`), and what it takes to make it again (`version`, `date`, `fingerprint`).

    Examples
    --------
    >>> import anndata, numpy as np, partwise as pw
    >>> rng = np.random.default_rng(0)
    >>> programs = rng.gamma(0.3, size=(3, 50))
    >>> adata = anndata.AnnData(rng.poisson(rng.gamma(0.5, size=(80, 3)) @ programs).astype(float))
    >>> pw.sc.nmf(adata, 3)
    >>> adata.obsm["X_nmf"].shape, adata.varm["nmf_loadings"].shape, adata.uns["nmf"]["status"]
    ((80, 3), (50, 3), 'converged')
    """
    check_annotated(adata)
    key = checked_key(key_added)
    X, genes = matrix_in(adata, layer), chosen_genes(adata, mask_var)
    if not is_positive_int(n_components):
        raise ValueError(f"n_components must be a whole number >= 1, got {n_components!r}")
    loss = resolve("loss", loss)
    part = X if genes is None else X[:, genes]
    warn_if_no_counts(part, loss, adata, layer)
    if isinstance(normalize, str) and normalize == AUTO:
        normalize = (
            "balanced"
            if any(name.startswith("structure") and settings[name] is not None for name in settings)
            else ("H", "l1")
        )
    result = factorize(part, n_components, loss=loss, normalize=normalize, random_state=random_state, **settings)
    adata = adata.copy() if copy else adata
    loadings = np.zeros((adata.n_vars, result.rank), result.H.dtype)
    loadings[slice(None) if genes is None else genes] = result.H.T
    adata.obsm[f"X_{key}"] = np.ascontiguousarray(result.W)
    adata.varm[f"{key}_{LOADINGS}"] = loadings
    stated = {"layer": layer, "mask_var": told_mask(mask_var, genes), **settings}
    adata.uns[key] = described(result, stated)
    return adata if copy else None


def project(adata: Any, reference: Any, *, key: str = "nmf", layer: str | None = None, copy: bool = False) -> Any:
    """The weights of new cells in programs that `nmf` found in others, which stay as they are.

    Parameters
    ----------
    adata : AnnData
        New cells, with at least the genes of the programs; these are matched by name.
    reference : AnnData
        What `nmf` was run on.
    key : str
        `key_added` of that run.
    layer : str, optional
        Layer of `adata` to take in place of its X.
    copy : bool
        Whether to return a copy with the entry, and leave `adata` as it is.

    Returns
    -------
    None, or AnnData where `copy`, with ``obsm["X_nmf"]``, the weights of programs in the new cells.

    Examples
    --------
    >>> import anndata, numpy as np, partwise as pw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.gamma(0.5, size=(80, 3)) @ rng.gamma(0.3, size=(3, 50))).astype(float)
    >>> cells = anndata.AnnData(X)
    >>> old, new = cells[:60].copy(), cells[60:].copy()
    >>> pw.sc.nmf(old, 3)
    >>> pw.sc.project(new, old)
    >>> new.obsm["X_nmf"].shape
    (20, 3)
    """
    check_annotated(adata)
    check_annotated(reference, "reference")
    loadings, about = fitted(reference, key)
    taken = loadings.any(axis=1)  # a gene that is in no program says nothing of its weights
    fitted_genes = matrix_modes(None, reference.var_names[taken])
    order = columns_by_name(matrix_modes(None, adata.var_names), fitted_genes)
    X = matrix_in(adata, layer)
    X = X if order is None else X[:, order]
    loss, structure, tol = model_in(about["params"])
    counts = {"missing": "nan", "mask": None, "weights": None}
    W = projected_rows(checked_data(X, missing="nan"), (loadings[taken],), structure, loss, counts, tol=tol)
    adata = adata.copy() if copy else adata
    adata.obsm[f"X_{key}"] = W
    return adata if copy else None


def top_genes(adata: Any, n_genes: int = 20, *, key: str = "nmf", relevance: float = 0.3) -> Any:
    """The genes that tell most of each program, one program a column.

    Genes are in the order of `relevance * log(h) + (1 - relevance) * log(h / p)`, h being the share of a gene in the
    program and p its share in all cells by the model: Sievert and Shirley (2014), LDAvis. With 1 they are in the order
    of their weights, where genes that all cells express come first; with 0 in that of how specific they are, however
    few their counts.

    Parameters
    ----------
    adata : AnnData
        What `nmf` was run on.
    n_genes : int
        How many genes of each program; fewer where it has fewer.
    key : str
        `key_added` of that run.
    relevance : float
        Between 0 and 1. For words 0.6 is usual; for genes, of which a few hundred are in all cells, less serves better.

    Returns
    -------
    pandas.DataFrame
        Names of genes, most relevant first; empty text where a program has no more.

    Examples
    --------
    >>> import anndata, numpy as np, partwise as pw
    >>> adata = anndata.AnnData(np.kron(np.eye(2), np.ones((4, 1))) @ [[9.0, 6, 0, 5], [0, 0, 8, 5]])
    >>> adata.var_names = ["CD3D", "CD3E", "MS4A1", "ACTB"]
    >>> pw.sc.nmf(adata, 2)
    >>> pw.sc.top_genes(adata, 2)
      part 1 part 2
    0   CD3D  MS4A1
    1   CD3E   ACTB
    """
    import pandas as pd  # noqa: PLC0415  # AnnData needs it

    check_annotated(adata)
    if not is_positive_int(n_genes):
        raise ValueError(f"n_genes must be a whole number >= 1, got {n_genes!r}")
    if not 0 <= relevance <= 1:
        raise ValueError(f"relevance must be between 0 and 1, got {relevance!r}")
    loadings, _ = fitted(adata, key)
    sizes = loadings.sum(axis=0)
    h = loadings / np.where(sizes > 0, sizes, 1.0)
    model = loadings @ np.asarray(adata.obsm[f"X_{key}"], np.float64).sum(axis=0)
    p = (model / (model.sum() or 1.0))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where((h > 0) & (p > 0), np.log(h) - (1 - relevance) * np.log(p), -np.inf)
    order = np.argsort(-scores, axis=0, kind="stable")[:n_genes]
    names = np.asarray(adata.var_names, dtype=object)[order]
    return pd.DataFrame(
        np.where(np.take_along_axis(scores, order, axis=0) > -np.inf, names, ""), columns=part_names(loadings.shape[1])
    )


def check_annotated(adata, name: str = "adata") -> None:
    if not is_annotated(adata) or not hasattr(adata, "obsm"):
        hint = (
            "pass adata.raw.to_adata()"
            if hasattr(adata, "to_adata")
            else "partwise.factorize takes matrices and frames"
        )
        raise TypeError(f"{name} must be an AnnData object, got one of type {type(adata).__name__}: {hint}")


def checked_key(key) -> str:
    if not isinstance(key, str) or not key or "/" in key:  # which would be a group inside another in a file
        raise ValueError(f"key_added must be text without '/', such as 'nmf'; got {key!r}")
    return key


def matrix_in(adata, layer: str | None):
    """The matrix of cells x genes, of which rows and columns can be taken."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"adata has no layer {layer!r}, it has {', '.join(map(str, adata.layers)) or 'none'}")
    X = annotated_matrix(adata, "adata") if layer is None else adata.layers[layer]
    return X.tocsr() if issparse(X) and X.format not in ("csr", "csc") else X


def chosen_genes(adata, mask_var) -> np.ndarray | None:
    """One bool for each gene; None for all of them."""
    if isinstance(mask_var, str) and mask_var == AUTO:
        mask_var = HIGHLY_VARIABLE if HIGHLY_VARIABLE in adata.var else None
    if mask_var is None:
        return None
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            known = ", ".join(map(str, adata.var.columns[:20])) or "no columns"
            raise ValueError(f"adata.var has no column {mask_var!r} to take genes by: it has {known}")
        mask_var = adata.var[mask_var]
    genes = np.asarray(mask_var)
    if genes.dtype != bool or genes.shape != (adata.n_vars,):
        raise ValueError(
            f"mask_var must be one bool for each of the {adata.n_vars} genes, or the name of a column of adata.var "
            f"that has them; got an array of shape {genes.shape} and type {genes.dtype}"
        )
    if not genes.any():
        raise ValueError("mask_var takes no gene at all")
    return genes


def told_mask(mask_var, genes: np.ndarray | None) -> str | None:
    """Which genes were taken, in a word."""
    if genes is None:
        return None
    return (HIGHLY_VARIABLE if mask_var == AUTO else mask_var) if isinstance(mask_var, str) else "array"


def warn_if_no_counts(X, loss, adata, layer: str | None) -> None:
    """KL is for counts: say so where they are not whole numbers, or raise where some are negative."""
    if getattr(loss, "beta", None) != 1:
        return
    values = X.data if issparse(X) else np.asarray(X)
    lowest = float(np.min(values, initial=0))
    layers = [name for name in adata.layers if name != layer]
    place = "adata.X" if layer is None else f"adata.layers[{layer!r}]"
    other = COUNTS if COUNTS in layers else layers[0] if layers else COUNTS
    there = f"layer={other!r}" if layers else "the counts"
    if lowest < 0:
        raise ValueError(
            f"{place} has negative entries, down to {lowest:.3g}, as scaled data have, and {loss} is for counts: pass "
            f"{there}, or keep them before scaling, adata.layers['counts'] = adata.X.copy()"
        )
    if values.dtype.kind == "f" and np.any(values % 1 > 0):
        warn(
            f"{place} has numbers that are not whole, as normalised or logarithmic data have, and {loss} is the "
            f"likelihood of counts: pass {there}, or loss='frobenius' for such data"
        )


def fitted(adata, key: str) -> tuple[np.ndarray, dict[str, Any]]:
    """The loadings that `nmf` wrote, in double precision, and what it said of them."""
    if key not in adata.uns or f"{key}_{LOADINGS}" not in adata.varm or f"X_{key}" not in adata.obsm:
        raise ValueError(
            f"there is no {key!r} of partwise.sc.nmf in it: run partwise.sc.nmf(adata, n_components) first"
        )
    return np.asarray(adata.varm[f"{key}_{LOADINGS}"], np.float64), adata.uns[key]


def model_in(params: dict[str, Any]) -> tuple[Loss, Structure, float]:
    """The loss, what is asked of the weights of new cells, and `tol`."""
    try:
        structure = resolve("structure", params["structure_W"])
        loss, tol = resolve("loss", params["loss"]), float(params["tol"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the loss or the structure of W cannot be read from adata.uns ({error}): fit with partwise.factorize, and "
            "use result.transform"
        ) from error
    return loss, for_new_rows(structure, "structure_W", "any weights >= 0") or NonNegative(), tol


def described(result: Result, stated: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a fit beside its factors: text, numbers and arrays, which .h5ad files can hold."""
    about = result.provenance
    assert about is not None
    params = {
        "n_components": result.rank,
        "loss": repr(result.loss),
        "structure_W": repr(result.structures[0]),
        **{name: plain(value) for name, value in stated.items() if value is not None},
        **{name: plain(about.settings[name]) for name in ("solver", "init", "n_init", "tol")},
    }
    return {
        "params": params if about.seed is None else params | {"random_state": about.seed},
        "objective": result.objective,
        "relative_error": result.relative_error,
        "explained": result.explained,
        "shares": result.shares,
        "n_iter": result.n_iter,
        "status": result.status,
        "certificate": str(result.certificate),
        "version": about.version,
        "date": about.date,
        "fingerprint": about.data["fingerprint"],
    }


def plain(value: Any) -> Any:
    """A setting as a file can hold it."""
    return value if isinstance(value, str | int | float | bool) else repr(value)
