"""Runs the program cne in a temporary folder, and gives it arrays as files."""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import weakref
import zipfile
from errno import ENOENT, ENOEXEC

import numpy as np

from .__main__ import program

# The keys of the program's configuration that parameters stand for.
KEYS = {
    "preset": "preset", "n_components": "model.dim", "n_neighbors": "graph.k", "metric": "graph.metric", "loss": "loss.name", "s": "loss.s",
    "negatives": "loss.negatives", "n_epochs": "train.epochs", "learning_rate": "train.lr", "init": "model.init", "pull": "loss.pull",
    "towards": "loss.towards", "random_state": "seed",
}
# What messages call files and keys, by a pattern. Keys of one word are words of messages, too.
_WORDS = {
    **{re.escape(f + "." + ending): word for f, word in (("points", "X"), ("init", "init"), ("towards", "towards"), ("knn", "precomputed_knn"), ("labels", "labels"),
                                                         ("names", "names"), ("images", "images"), ("embedding", "embedding"))
       for ending in ("npy", "npz", "txt")},
    **{r"(?<![\w.])%s(?![\w.])" % re.escape(key) if "." in key else "^%s(?=:)" % key: parameter
       for parameter, key in {**KEYS, "precomputed_knn": "graph.file", "parametric": "model.kind", "names": "data.names"}.items()},
}


class Folder(tempfile.TemporaryDirectory):
    """A temporary folder in which the program runs.

    Files have the same names in each, so neither the configuration that the program
    writes nor its messages depend on where the folder is.
    """

    def __init__(self):
        super().__init__(prefix="cne-")

    def __enter__(self):
        return self

    def path(self, name):
        return os.path.join(self.name, name)

    def write(self, name, content):
        """Write bytes, text, or an array of numbers as .npy; return the name."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            if isinstance(content, (bytes, str)):
                f.write(content.encode() if isinstance(content, str) else content)
            else:
                # numpy.save would not say why it cannot write.
                content = np.ascontiguousarray(content)
                np.lib.format.write_array_header_1_0(f, np.lib.format.header_data_from_array_1_0(content))
                f.write(memoryview(content.reshape(-1).view(np.uint8)))
        return name

    def write_sparse(self, name, matrix):
        """Write a scipy matrix as scipy.sparse.save_npz does."""
        matrix = matrix.tocsr()
        return self.write_arrays(name, indices=matrix.indices, indptr=matrix.indptr, data=matrix.data, shape=matrix.shape, format=b"csr")

    def write_arrays(self, name, **arrays):
        """Write arrays as numpy.savez does, which complains in a second way about a full disk."""
        with zipfile.ZipFile(self.path(name), "w") as z:
            for key, value in arrays.items():
                with z.open(key + ".npy", "w", force_zip64=True) as f:
                    np.lib.format.write_array(f, np.asarray(value))
        return name

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def array(self, name):
        return np.load(self.path(name))

    def json(self, name):
        return json.loads(self.read(name))

    def run(self, *args, verbose=False, n_jobs=None):
        """Run the program in the folder until it ends, or until an exception ends it.

        Its warnings become UserWarnings, and its error an exception. With verbose,
        progress is printed.
        """
        error, errno, rest = "", None, b""
        with open(self.path("stdout"), "wb") as stdout:
            child = _start([*args] if verbose else [*args, "--quiet"], n_jobs, stdout, cwd=self.name, until_eof=True)
            progress = _Progress() if verbose else None
            try:
                for line in child.stderr:
                    try:
                        record = json.loads(line)
                        level, message = record.pop("level"), _renamed(record.pop("msg"))
                    except (ValueError, KeyError, TypeError, AttributeError):
                        rest = (rest + line)[:2000]
                        continue
                    record.pop("time", None)
                    if level == "ERROR":
                        error, errno = message, record.get("errno")
                    elif level == "WARN":
                        # The warning stands at the first caller outside the package.
                        warnings.warn(_with(message, record), stacklevel=_outside())
                    elif progress:
                        progress.show(message, record)
                code = child.wait()
            finally:
                if progress:
                    progress.end()
                if child.poll() is None:
                    child.kill()  # all that it writes is thrown away
                    child.wait()
                child.stdin.close()
                child.stderr.close()
        if code != 0:
            raise _exception(code, error, errno, rest)


class Server:
    """The program with a model, which places points of one estimator after the other.

    It ends when the server is no longer used, or this process ends.
    """

    def __init__(self, folder, model, n_jobs, of):
        self.of, self.n_jobs, self.pid, self.lock = of, n_jobs, os.getpid(), threading.Lock()
        # Its own session keeps it from the signals of the terminal.
        self.child = _start(["project", "--serve", "--model=" + os.path.join(folder.name, model), "--quiet"], n_jobs, subprocess.PIPE,
                            start_new_session=os.name == "posix")
        self.end = weakref.finalize(self, _end, self.child, self.pid)
        self.answer(folder)

    def serves(self, of, n_jobs):
        """Report whether it has the model, and runs."""
        return self.of is of and self.n_jobs == n_jobs and self.pid == os.getpid() and self.child.poll() is None

    def place(self, folder, name):
        """Return the positions of the points in a file in the folder."""
        with self.lock:
            try:
                self.child.stdin.write(json.dumps(folder.path(name)).encode() + b"\n")
                self.child.stdin.flush()
            except OSError:
                pass  # it has ended, and answer says why
            return self.answer(folder)

    def answer(self, folder):
        try:
            line = self.child.stdout.readline()
            answer = json.loads(line) if line else None
            if answer and "error" not in answer:
                data = self.child.stdout.read(4 * answer["n"] * answer["d"])
                return np.frombuffer(data, "<f4").reshape(answer["n"], answer["d"]).copy()
        except BaseException:
            self.end()  # what it still answers is of no use
            raise
        if answer:
            raise _exception(1, _renamed(answer["error"].replace(folder.name + os.sep, "")), answer.get("errno"), b"")
        error, errno, rest = "", None, b""
        for line in self.child.stderr:
            try:
                record = json.loads(line)
                if record["level"] == "ERROR":
                    error, errno = _renamed(record["msg"].replace(folder.name + os.sep, "")), record.get("errno")
            except (ValueError, KeyError, TypeError):
                rest += line
        code = self.child.wait()
        self.end()
        raise _exception(code, error, errno, rest)


def _end(child, pid):
    """End a server, unless this is a fork of the process that has started it."""
    if pid == os.getpid():
        child.kill()
        child.wait()
    else:
        child.returncode = 0  # not for this process to wait for
    for pipe in child.stdin, child.stdout, child.stderr:
        try:
            pipe.close()
        except OSError:
            pass  # a request was not sent


def _start(args, n_jobs, stdout, until_eof=False, **options):
    """Start the program."""
    command = [program(), *args, "--log-format=json"]
    # The environment must not change the configuration; CNE_LIB… are paths of CUDA's libraries.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CNE_") or k.startswith("CNE_LIB")}
    if until_eof:
        environment["CNE_UNTIL_EOF"] = "1"  # the program ends with this process
    if n_jobs is not None and n_jobs > 0:
        environment["GOMAXPROCS"] = str(n_jobs)
    try:
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, **options)
    except OSError as e:
        raise type(e)(e.errno, "cannot run the program %s: %s%s" % (command[0], e.strerror, "; is it made for this machine?" if e.errno == ENOEXEC else "")) from None


def _exception(code, error, errno, rest):
    """Return the exception for the end of the program."""
    if code < 0:
        return RuntimeError("the program cne was killed by signal %d%s" % (-code, ", perhaps for lack of memory" if code == -9 else ""))
    if not error:
        return RuntimeError("the program cne failed with exit code %d: %s" % (code, rest.decode(errors="replace").strip() or "it said nothing"))
    if code == 2 and error.startswith("unknown "):
        return RuntimeError("the program %s does not suit this package, as it may be too old: %s" % (program(), error))
    if errno and errno != ENOENT:
        return OSError(errno, error) if os.name == "posix" else OSError(error)
    if error.startswith(("internal error", "interrupted")):
        return RuntimeError("the program cne ended: " + error)
    return ValueError(error)


def _with(message, attributes):
    return message + "".join(" %s=%s" % (k, "%.5g" % v if isinstance(v, float) else v) for k, v in attributes.items())


def _outside():
    """Return the stacklevel of the first frame outside the package, for a caller's warning."""
    level, frame, here = 1, sys._getframe(1), os.path.dirname(__file__)
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == here:
        level, frame = level + 1, frame.f_back
    return level


class _Progress:
    """Prints messages, and the epochs of a run on one line."""

    def __init__(self):
        self.line, self.last = "", 0.0

    def show(self, message, record):
        if message == "epoch":
            if record["epoch"] < record["epochs"] and time.monotonic() - self.last < 0.2:
                return
            self.last = time.monotonic()
            line = "epoch %d/%d  loss %.5g" % (record["epoch"], record["epochs"], record["loss"])
            if record.get("seconds_left"):
                line += "  %.0f s left" % record["seconds_left"]
            print("\r" + line.ljust(len(self.line)), end="", flush=True)
            self.line = line
        elif message not in ("training starts", "training ends"):
            self.end()
            print(_with(message, record), flush=True)

    def end(self):
        if self.line:
            print(flush=True)
        self.line = ""


def _renamed(text):
    """Return a message of the program in the words of Python's parameters."""
    text = re.sub(r"; --set data\.missing=.*\bmean fills in", r'; config={"data.missing": "mean"} fills in', text)
    # Advice about the command line, flags, and what is in a folder that is removed.
    text = re.sub(r'; see "cne [^"]*"$|^--set [\w.]+: |^--[\w-]+: | \(data\.path:[^()]*\)$|; --set data\.missing=.*$| \(--[^()]*\)|; fix the values, or [^;]*$', "", text)
    text = re.sub(r"; the embedding[^;]*|; \"cne [^\"]*\" continues| \(the embeddings?[^()]*\)", "", text)
    text = re.sub(r"\b(want|or) null\b", r"\1 None", text)
    text = re.sub(r"([+-])Inf\b", lambda m: m[1].strip("+") + "inf", text)
    for pattern, word in _WORDS.items():
        text = re.sub(pattern, word, text)
    return re.sub(r"\b(\w+: )\1+", r"\1", text)
