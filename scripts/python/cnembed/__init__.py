"""Contrastive neighbour embeddings (t-SNE, UMAP and what lies between) for Python.

    from cnembed import CNE
    embedding = CNE().fit_transform(X)

CNE is an estimator with scikit-learn's interface; evaluate measures embeddings, and
explore makes a page to explore one. The program cne does the work, in a process of its
own. It comes with the package; the environment variable CNEMBED_PROGRAM names another.
"""

__all__ = ["CNE", "NotFittedError", "Page", "Spectrum", "evaluate", "explore"]


def __getattr__(name):
    # NumPy is imported with the first of these names: the command cne does not need it.
    if name == "__version__":
        from importlib.metadata import version

        return version("cnembed")
    if name not in __all__:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from . import _estimator

    return getattr(_estimator, name)


def __dir__():
    return __all__
