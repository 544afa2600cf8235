"""scikit-learn estimators: they validate, translate parameters, call `factorize` and unpack. No mathematics."""

from .dictionary import Dictionary
from .function import non_negative_factorization
from .nmf import NMF

__all__ = ["NMF", "Dictionary", "non_negative_factorization"]
