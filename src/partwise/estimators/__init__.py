"""scikit-learn estimators: they validate, translate parameters, call `factorize` and unpack. No mathematics."""

from .dictionary import Dictionary
from .nmf import NMF, non_negative_factorization

__all__ = ["NMF", "Dictionary", "non_negative_factorization"]
