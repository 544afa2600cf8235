"""scikit-learn estimators: they validate, translate parameters, call `factorize` and unpack. No mathematics."""

from .dictionary import Dictionary
from .function import non_negative_factorization
from .minibatch import MiniBatchNMF
from .nmf import NMF
from .ntf import NTF

__all__ = ["NMF", "NTF", "Dictionary", "MiniBatchNMF", "non_negative_factorization"]
