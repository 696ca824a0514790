"""Contrastive neighbour embeddings (t-SNE, UMAP and what lies between) for Python.

    from cnembed import CNE
    embedding = CNE().fit_transform(X)

CNE is an estimator with scikit-learn's interface; evaluate measures embeddings, and
explore makes a page to explore one. The program cne does the work, in a process of its
own. It comes with the package; the environment variable CNEMBED_PROGRAM names another.
"""
from ._estimator import CNE, NotFittedError, Page, Spectrum, evaluate, explore

__all__ = ["CNE", "NotFittedError", "Page", "Spectrum", "evaluate", "explore"]
