"""The estimator, and what is done with embeddings."""
import csv
import html
import inspect
import io
import json
import os
import pathlib
import re
import shutil
import struct
import sys
import tempfile
import weakref

import numpy as np

from ._program import KEYS, Folder, Server

# Keys that the package sets, and that choose rows.
_OWN = ("output.", "data.path", "data.labels", "data.names", "data.holdout", "data.sample", "data.imbalance", "graph.file", "graph.cache", "model.kind",
        "model.keep_data", "log.", "checkpoint.")
# A fit measures and draws nothing: evaluate and explore do.
_QUIET = ("output.csv=false", "output.plot=false", "graph.cache=false", "checkpoint.minutes=0", "quality.recall=false",
          "quality.partition=false", "quality.kl=false", "quality.accuracy=false", "quality.spearman_sample=0")
# What a fitted estimator keeps of a run, enough for transform and evaluate, and where the
# program has it in its folder.
_KEPT = {"config.yaml": "run/config.yaml", "model.safetensors": "run/model.safetensors", "training_points.safetensors": "run/training_points.safetensors",
         "metrics.json": "run/metrics.json", "knn.npy": "knn.npy", "knn.npz": "knn.npz"}


# Words for a missing value, in small letters: those of internal/text/text.go.
_MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "nat", "none", "null", "<na>", "pd.na", "pd.nat", "np.nan", "na_character_", "(null)", "\\n"}

# The programs that place points of estimators.
_servers = weakref.WeakKeyDictionary()


class NotFittedError(ValueError, AttributeError):
    """An estimator that is not fitted has been used."""


class CNE:
    """Contrastive neighbour embedding, with scikit-learn's interface.

    Parameters that are None are chosen by the preset for the number of points. The same
    data, parameters and random_state give the same embedding.

    Parameters
    ----------
    n_components : int, dimensions of the embedding
    preset : "auto", "tsne", "umap", "million", "fast" or "paper"
    n_neighbors : int, neighbours of each point in the graph, not counting itself
    metric : "euclidean", "cosine", "correlation", "manhattan", "hamming", "jaccard" or
        "haversine" (latitude and longitude in degrees); "precomputed": X is a square matrix
        of distances, and for transform has the distances of new points from those of fit
    loss : "neg", "nc", "infonc" or "umap"
    s : float, position on the spectrum between t-SNE (0) and UMAP (1), for "neg" and "infonc"
    negatives : int or "full", negative samples for each edge
    n_epochs : int
    learning_rate : float
    init : "pca", "diffusion", "multilevel", "random", or an array (n_samples, n_components)
    pull : float, strength of a pull towards the principal components: 0.05, 0.15 or 0.5 for ever
        more of their layout
    towards : array (n_samples, n_components), positions to pull towards instead
    parametric : bool or "network". True trains the paper's network, which places new points by
        itself. "network" makes the map as ever, and then a network that learns it places them
    precomputed_knn : the neighbours of all points, not searched for then: a tuple of their
        row numbers (integers) and distances (floats), in either order and both n_samples ×
        k; an array of row numbers; or a scipy matrix: symmetric with a weight for each edge,
        such as scanpy's connectivities, or of distances, such as scikit-learn's
        kneighbors_graph(mode="distance"). All count, unless n_neighbors is given.
    random_state : int, None (the program's seed 0), or NumPy's RandomState or Generator
    n_jobs : int, number of processor cores; None or -1: all. Results do not depend on it.
    config : dict, more keys of the program's configuration, e.g. {"train.batch_size": 4096};
        the command "cne config" prints them
    verbose : bool, print progress

    A fitted estimator, pickled or saved, contains the training points or their principal
    components, unless it is parametric.

    Attributes
    ----------
    embedding_ : float32 array (n_samples, n_components)
    n_features_in_ : int
    feature_names_in_ : array of str, if X was a table with names of columns
    """

    def __init__(self, n_components=2, *, preset="auto", n_neighbors=None, metric="euclidean", loss=None, s=None, negatives=None, n_epochs=None,
                 learning_rate=None, init=None, pull=None, towards=None, parametric=False, precomputed_knn=None, random_state=None, n_jobs=None,
                 config=None, verbose=False):
        self.n_components = n_components
        self.preset = preset
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.loss = loss
        self.s = s
        self.negatives = negatives
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.init = init
        self.pull = pull
        self.towards = towards
        self.parametric = parametric
        self.precomputed_knn = precomputed_knn
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.config = config
        self.verbose = verbose

    def fit(self, X, y=None):
        """Embed the rows of X, an array, a table or a sparse matrix; y is not used."""
        points, names = _points(X, 2)
        with Folder() as folder:
            self._run(folder, ["train"], points, _QUIET)
            embedding = folder.array("run/embedding.npy")
            files = {f: folder.read(path) for f, path in _KEPT.items() if os.path.exists(folder.path(path))}
        if len(embedding) != points.shape[0]:
            raise ValueError("config: got %d positions for %d rows of X; a key leaves rows out" % (len(embedding), points.shape[0]))
        self._fitted(embedding, files, points.shape[1], names)
        return self

    def fit_transform(self, X, y=None):
        """Embed the rows of X and return their positions."""
        return self._output(self.fit(X, y).embedding_, X)

    def transform(self, X):
        """Place new points in the embedding.

        Without a network, each is placed next to its nearest training points: a point that is
        a training point gets its position; of equal training points, the position of the
        first. A network places all points itself, training points too. The first call starts the program, which keeps the model until
        the estimator is fitted again or no longer used; a further call takes less than a
        millisecond for a few points.
        """
        self._check_fitted()
        points = self._new_points(X)
        with Folder() as folder:
            server = _servers.get(self)
            if server is None or not server.serves(self._files, self.n_jobs):
                server = _servers[self] = Server(folder, self._folder or self._put(folder), self.n_jobs, self._files)
            return self._output(server.place(folder, _put_points(folder, points)), X)

    def spectrum(self, X, y=None, s=(-0.5, 0, 0.5, 1, 1.5)):
        """Embed X at the places s between t-SNE (0) and UMAP (1), from one early phase.

        Labels y colour the page. The estimator stays as it is.
        """
        points, _ = _points(X, 2)
        with Folder() as folder:
            values = ",".join(repr(float(v)) for v in np.atleast_1d(s))
            labels = [] if y is None else ["--labels=" + _put_values(folder, "labels", y, points.shape[0])]
            self._run(folder, ["spectrum", "--s=" + values, *labels], points, _QUIET[:2], leave=("s",))
            embeddings = np.stack([folder.array("run/%s/embedding.npy" % f["folder"]) for f in folder.json("run/spectrum.json")["embeddings"]])
            table = csv.DictReader(io.StringIO(folder.read("run/spectrum.csv").decode()))
            figures = [{name: float(v) for name, v in row.items() if v} for row in table]
            return Spectrum([f["s"] for f in figures], embeddings, figures, Page(folder.read("run/explorer.html").decode()))

    def evaluate(self, X, y=None):
        """Return the figures of the embedding of X, the training data: see the function evaluate."""
        return evaluate(self, X, y)

    def explore(self, path=None, **options):
        """Return a page to explore the embedding: see the function explore."""
        return explore(self, path, **options)

    def save(self, path):
        """Save the fitted estimator to a new folder, which cne project takes as a model, too.

        The parameters init, towards and precomputed_knn are left out if they are arrays, and so is a
        random_state that is not a number.
        """
        self._check_fitted()
        path = os.path.abspath(path)
        if os.path.lexists(path):
            raise FileExistsError("%s exists; remove it, or name another folder" % path)
        params = {k: v.item() if isinstance(v, np.generic) else v for k, v in self.get_params().items()}
        params = {k: v for k, v in params.items() if isinstance(v, (str, int, float, bool, dict, type(None)))}
        state = {"params": params, "n_features_in": self.n_features_in_, "feature_names_in": list(getattr(self, "feature_names_in_", [])) or None}
        whole = tempfile.mkdtemp(prefix=".cne-", dir=os.path.dirname(path))
        try:
            for name, content in {**self._files, "estimator.json": json.dumps(state, indent=1, default=_plain).encode()}.items():
                pathlib.Path(whole, name).write_bytes(content)
            np.save(os.path.join(whole, "embedding.npy"), self.embedding_)
            os.chmod(whole, 0o755)
            os.rename(whole, path)
        except BaseException:
            shutil.rmtree(whole, ignore_errors=True)
            raise

    @classmethod
    def load(cls, path):
        """Load an estimator that save wrote, or a run folder of cne train.

        The parameters of a run folder are in its config.yaml; here they are the defaults.
        """
        path = os.path.abspath(path)
        files = {f: pathlib.Path(path, f).read_bytes() for f in _KEPT if f in os.listdir(path)}
        if "model.safetensors" not in files:
            raise ValueError("%s: got no model.safetensors, want a folder of CNE.save or cne train" % path)
        embedding = np.load(os.path.join(path, "embedding.npy"))
        try:
            metadata = _metadata(files["model.safetensors"])
            before = json.loads(metadata["preprocessing"])
            state = {"params": {}, "n_features_in": before["width"], "feature_names_in": before.get("columns")}
            if os.path.exists(os.path.join(path, "estimator.json")):
                state = json.loads(pathlib.Path(path, "estimator.json").read_bytes())
            table = json.loads(metadata["architecture"])["kind"] == "table"
            new = cls(**state["params"])
            new._fitted(embedding, files, state["n_features_in"], state["feature_names_in"])
        except (KeyError, TypeError, ValueError, struct.error) as e:
            raise ValueError("%s: model.safetensors or estimator.json is damaged, or not of an embedding of points (%r)" % (path, e)) from None
        if table and "training_points.safetensors" not in files:
            new._folder = path  # whose model knows where the training points are
        return new

    def get_params(self, deep=True):
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params):
        """Set parameters and return the estimator."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError("Invalid parameter %r for estimator %r. Valid parameters are: %r." % (name, self, self._names()))
            setattr(self, name, value)
        return self

    def get_feature_names_out(self, input_features=None):
        """Return the names of the embedding's columns: cne0, cne1 and so on."""
        self._check_fitted()
        return np.array(["cne%d" % c for c in range(self.embedding_.shape[1])], dtype=object)

    def set_output(self, *, transform=None):
        """Choose what transform and fit_transform return: "default" (arrays) or "pandas"."""
        if transform not in (None, "default", "pandas"):
            raise ValueError("transform: got %r, want 'default' or 'pandas'" % (transform,))
        if transform:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __repr__(self):
        defaults = {k: p.default for k, p in inspect.signature(CNE).parameters.items()}
        changed = ((k, v) for k, v in self.get_params().items() if v is not defaults[k] and repr(v) != repr(defaults[k]))
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % p for p in changed))

    def _more_tags(self):  # of scikit-learn before 1.6
        return {"preserves_dtype": [np.float32], "X_types": ["2darray", "sparse"], "pairwise": self.metric == "precomputed"}

    def __sklearn_tags__(self):  # of scikit-learn from 1.6 on
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), transformer_tags=TransformerTags(preserves_dtype=["float32"]),
                    input_tags=InputTags(sparse=True, pairwise=self.metric == "precomputed"))

    @classmethod
    def _names(cls):
        return list(inspect.signature(cls).parameters)

    def _fitted(self, embedding, files, width, names):
        self.embedding_, self._files, self._folder, self.n_features_in_ = embedding, files, None, width
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_fitted(self):
        if not hasattr(self, "embedding_"):
            error = NotFittedError
            if "sklearn.exceptions" in sys.modules:  # else nobody catches scikit-learn's error
                error = type("NotFittedError", (NotFittedError, sys.modules["sklearn.exceptions"].NotFittedError), {})
            raise error("this %s is not fitted yet: call fit first" % type(self).__name__)

    def _new_points(self, X):
        """Return the points of X, with its columns in the order of the training data."""
        known = getattr(self, "feature_names_in_", None)
        names = _column_names(X)
        if known is not None and names is not None and names != list(known):
            missing, unknown = [n for n in known if n not in names], [n for n in names if n not in known]
            if missing or unknown:
                raise ValueError("X: columns differ from those of fit: missing %s, unknown %s" % (missing[:5], unknown[:5]))
            X = X[list(known)]
        points, _ = _points(X)
        if points.shape[1] != self.n_features_in_:
            raise ValueError("X has %d features, but %s is expecting %d features as input" % (points.shape[1], type(self).__name__, self.n_features_in_))
        return points

    def _put(self, folder):
        """Write the run folder of the fit, and return its name."""
        for name, content in self._files.items():
            folder.write(_KEPT[name], content)
        folder.write("run/embedding.npy", self.embedding_)
        return "run"

    def _run(self, folder, command, points, settings, leave=()):
        """Run a command that embeds points, into the folder run."""
        settings = list(settings)
        for name, key in KEYS.items():
            value = getattr(self, name)
            if name == "random_state":
                value = _seed(value)
            elif name in ("init", "towards") and value is not None and not isinstance(value, str):
                start, shape = np.asarray(value, dtype=np.float32), (points.shape[0], self.n_components)
                if start.shape != shape:
                    raise ValueError("%s: got the shape %s, want %s" % (name, start.shape, shape))
                value = folder.write(name + ".npy", start)
            if value is not None and name not in leave:
                settings.append(_setting(key, value))
        if isinstance(self.parametric, str) and self.parametric not in ("network", "mlp"):
            raise ValueError("parametric: got %r, want False, True or \"network\"" % self.parametric)
        if self.parametric:
            settings.append(_setting("model.kind", self.parametric if isinstance(self.parametric, str) else "mlp"))
        elif command == ["train"]:
            settings.append("model.keep_data=true")
        if self.precomputed_knn is not None:
            settings.append("graph.file=" + _put_graph(folder, self.precomputed_knn, points.shape[0]))
        arguments = [a for setting in settings for a in ("--set", setting)] + _configured(self.config)
        folder.run(*command, _put_points(folder, points), "--output=run", *arguments, verbose=self.verbose, n_jobs=self.n_jobs)

    def _output(self, array, X):
        wanted = sys.modules["sklearn"].get_config().get("transform_output") if "sklearn" in sys.modules else None
        if getattr(self, "_sklearn_output_config", {}).get("transform", wanted) != "pandas":
            return array
        import pandas

        return pandas.DataFrame(array, index=X.index if hasattr(X, "iloc") else None, columns=self.get_feature_names_out())


class Spectrum:
    """Embeddings along the spectrum.

    s are the places, ascending, embeddings the positions (len(s), n_samples, n_components),
    figures a dict of s and the scores for each place, and page the Page with a slider, which a notebook shows.
    """

    def __init__(self, s, embeddings, figures, page):
        self.s, self.embeddings, self.figures, self.page = s, embeddings, figures, page

    def _repr_html_(self):
        return self.page._repr_html_()


class Page:
    """A page to explore an embedding, which a notebook shows; html is its text."""

    def __init__(self, text):
        self.html = text

    def save(self, path):
        """Write the page to a file."""
        part = "%s.%d.part" % (path, os.getpid())
        try:
            with open(part, "w", encoding="utf-8") as f:
                f.write(self.html)
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.remove(part)

    def _repr_html_(self):
        # In a sandbox the page can neither read the notebook nor be styled by it.
        return ('<iframe title="Map of the points" sandbox="allow-scripts allow-downloads" style="width:100%%;height:600px;border:0" srcdoc="%s"></iframe>' % html.escape(self.html))


def evaluate(embedding, X, y=None, *, config=None):
    """Return figures of an embedding of X as a dict: recall, trustworthiness, densities, KL divergence and others.

    embedding is an array, of this package or another, or a fitted CNE, whose graph is then
    used. With classes y there is the accuracy of a kNN classifier. config has keys of the
    program's configuration, such as {"quality.k": 30}.
    """
    if isinstance(embedding, CNE):
        embedding._check_fitted()
        points = embedding._new_points(X)
    else:
        points, embedding = _points(X)[0], _positions(embedding)
    with Folder() as folder:
        what = embedding._put(folder) if isinstance(embedding, CNE) else folder.write("embedding.npy", embedding)
        arguments = _configured(config)
        if y is not None:
            arguments.append("--labels=" + _put_values(folder, "labels", y, points.shape[0]))
        folder.run("evaluate", what, "--data=" + _put_points(folder, points), "--output=figures.json", *arguments)
        figures = folder.json("figures.json")["embeddings"][0]
    del figures["path"]
    return figures


def explore(embedding, path=None, *, labels=None, names=None, columns=None, images=None, title=None):
    """Return a Page to explore an embedding, an array or a fitted CNE, and write it to path, if given.

    labels (classes or values) colour the points, and so do columns, a dict or table of
    further ones. names are shown and searched. images are an array (n, height, width) or
    (n, height, width, 3) of whole numbers from 0 to 255.
    """
    if isinstance(embedding, CNE):
        embedding._check_fitted()
        embedding = embedding.embedding_
    embedding = _positions(embedding)
    n = len(embedding)
    if columns is not None and not hasattr(columns, "keys"):
        raise ValueError("columns: got a %s, want a dict or table" % type(columns).__name__)
    with Folder() as folder:
        arguments = ["--title=" + title] if title else []
        for flag, values in (("labels", labels), ("names", names)):
            if values is not None:
                arguments.append("--%s=%s" % (flag, _put_values(folder, flag, values, n)))
        for i, column in enumerate(() if columns is None else columns.keys()):
            # The name of the file is the name of the column.
            arguments.append("--color=" + _put_values(folder, "%d/%s" % (i, re.sub(r"[^\w .()+-]", "_", str(column))[:60] or "_"), columns[column], n))
        if images is not None:
            images = np.asarray(images)
            if images.dtype.kind not in "biuf":
                raise ValueError("images: got %s, want an array of numbers" % images.dtype)
            if images.dtype != np.uint8:
                whole = images.astype(np.uint8)
                images = whole if (whole == images).all() else images  # which the program refuses
            arguments.append("--images=" + folder.write("images.npy", images))
        folder.run("plot", folder.write("embedding.npy", embedding), "--html", "--output=page.html", *arguments)
        page = Page(folder.read("page.html").decode())
    if path is not None:
        page.save(path)
    return page


def _column_names(X):
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        return None
    return list(names)


def _points(X, least=1):
    """Return X as an array of numbers, or a sparse matrix, and the names of its columns or None."""
    names = _column_names(X)
    if hasattr(X, "obsm") and hasattr(X, "layers"):
        raise TypeError("X: got an AnnData object, want an array: pass adata.obsm[\"X_pca\"], adata.layers[...] or adata.X, normalised; "
                        "for counts write the file, and run cne train cells.h5ad")
    if isinstance(X, np.ma.MaskedArray):
        X = X.astype(np.float64).filled(np.nan)
    kind = type(X).__name__
    if not hasattr(X, "tocsr"):
        X = np.asarray(X)
    if X.ndim == 0:
        raise ValueError("X: got a %s, want an array, a DataFrame or a scipy matrix" % kind)
    if X.ndim != 2:
        raise ValueError("Expected 2D array, got %dD array instead: X has the shape %s. Reshape your data with X.reshape(-1, 1) if it has a single "
                         "feature, or X.reshape(1, -1) if it is a single sample." % (X.ndim, X.shape))
    if X.dtype.kind in "cmM":
        what, remedy = ("Complex", "") if X.dtype.kind == "c" else ("Time", "; X.astype(\"int64\") makes numbers of it")
        raise ValueError("%s data not supported: X has the type %s%s" % (what, X.dtype, remedy))
    if X.dtype.kind not in "biuf" or X.dtype.itemsize > 8:
        if X.dtype.kind in "OUS":
            X = np.frompyfunc(lambda v: np.nan if str(v).strip().lower() in _MISSING else v, 1, 1)(X)
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError):
            _fail_on_column(X, names)
            raise
    for axis, what, least in (0, "sample", least), (1, "feature", 1):
        if X.shape[axis] < least:
            raise ValueError("Found array with %d %s(s) (shape=%s) while a minimum of %d is required." % (X.shape[axis], what, X.shape, least))
    return X, names


def _fail_on_column(X, names):
    """Raise an error that names the first column of X that is not numbers."""
    for j, column in enumerate(X.T):
        try:
            column.astype(np.float64)
        except (TypeError, ValueError) as e:
            raise (TypeError if isinstance(e, TypeError) else ValueError)(
                "X: column %s: %s; leave it out, or make numbers of it: X[column].astype(\"int64\") of dates, pandas.get_dummies(X) of texts"
                % (repr(names[j]) if names else j + 1, e)) from None


def _positions(embedding):
    """Return an embedding as an array."""
    if hasattr(embedding, "tocsr"):
        raise ValueError("embedding: got a sparse matrix, want an array")
    return _points(embedding)[0]


def _put_points(folder, points):
    return folder.write_sparse("points.npz", points) if hasattr(points, "tocsr") else folder.write("points.npy", points)


def _put_values(folder, name, values, n):
    """Write a value for each of n points, numbers as .npy and others as lines of text; return the file."""
    values = np.ma.filled(values.astype(object), None) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if values.dtype.kind == "M":  # of nanoseconds, tolist makes whole numbers
        values = values.astype("datetime64[us]")
    if values.shape != (n,):
        raise ValueError("%s: got the shape %s, want a value for each of %d points" % (name.partition("/")[2] or name, values.shape, n))
    if values.dtype.kind in "biuf" and np.isfinite(values).all():
        return folder.write(name + ".npy", values)
    # The program takes nan for a missing value.
    values = (v.decode(errors="replace") if isinstance(v, bytes) else v for v in values.tolist())
    lines = (" ".join(str("nan" if v is None else v).split()) or "nan" for v in values)
    return folder.write(name + ".txt", "".join(line + "\n" for line in lines))


def _put_graph(folder, graph, n):
    """Write neighbours or a graph; return the file."""
    if hasattr(graph, "tocsr"):
        return folder.write_sparse("knn.npz", graph)
    distances = None
    if isinstance(graph, tuple) and len(graph) in (2, 3):  # umap-learn's has its index as a third
        graph, distances = np.asarray(graph[0]), np.asarray(graph[1])
        if graph.dtype.kind == "f" and distances.dtype.kind in "iu":  # as scikit-learn gives them
            graph, distances = distances, graph
    graph = np.asarray(graph)
    if graph.ndim != 2 or len(graph) != n:
        raise ValueError("precomputed_knn: got the shape %s, want a row for each of the %d points" % (graph.shape, n))
    if distances is None:
        return folder.write("knn.npy", graph)
    if distances.shape != graph.shape:
        raise ValueError("precomputed_knn: got %s indices and %s distances, want as many of both" % (graph.shape, distances.shape))
    order = np.argsort(distances, axis=1, kind="stable")
    return folder.write_arrays("knn.npz", indices=np.take_along_axis(graph, order, 1), distances=np.take_along_axis(distances, order, 1))


def _setting(key, value):
    return "%s=%s" % (key, value if isinstance(value, str) else json.dumps(value, default=_plain))


def _configured(config):
    """Return the arguments that set the keys of config."""
    if not isinstance(config, (dict, type(None))):
        raise ValueError("config: got a %s, want a dict" % type(config).__name__)
    for key in config or ():
        for parameter in (p for p, k in KEYS.items() if k == key):
            raise ValueError("config: got the key %r, want the parameter %s" % (key, parameter))
        if not isinstance(key, str) or key.startswith(_OWN):
            raise ValueError("config: got the key %r, want one that chooses neither model, files nor rows" % (key,))
    return [a for item in (config or {}).items() for a in ("--set", _setting(*item))]


def _seed(state):
    if state is None:
        return None
    if isinstance(state, np.random.Generator):
        return int(state.integers(2**31))
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31 - 1))
    return state


def _plain(value):
    """Return a NumPy scalar as one of Python, for JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise ValueError("got a %s as a parameter, want a number, text, list or dict" % type(value).__name__)


def _metadata(model):
    (size,) = struct.unpack("<Q", model[:8])
    return json.loads(model[8:8 + size])["__metadata__"]
