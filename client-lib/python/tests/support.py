"""What the tests share."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(HERE), "src")
TABLE = os.path.join(HERE, "..", "..", "emit", "testdata", "conformance.json")

sys.path.insert(0, SOURCE)


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.file = os.path.join(self.dir, "metrics")
        self.fifo = os.path.join(self.dir, "fifo")

    def emitter(self, **environ):
        from benchmarkai import _emitter

        emitter = _emitter.Emitter(environ)
        self.addCleanup(emitter.close, 0)
        return emitter

    def lines(self, path=None):
        text = contents(path or self.file)
        self.assertTrue(text.endswith("\n"), text)
        return text[:-1].split("\n")

    def reader(self):
        """Makes the FIFO and opens it as the collector does."""
        os.mkfifo(self.fifo)
        fd = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, fd)
        return fd

    @contextlib.contextmanager
    def said(self):
        """What is said on standard error meanwhile."""
        text = io.StringIO()
        with contextlib.redirect_stderr(text):
            yield text


def contents(path):
    with open(path) as f:
        return f.read()


def without_time(line):
    """Returns a line of the metrics file without the time that was added to it."""
    head, at, _ = line.rpartition(', "@time": ')
    return head + "}" if at else line


def python(script, **environ):
    """Runs the script in an environment of nothing but environ."""
    environ.update(PYTHONPATH=SOURCE, PATH=os.environ["PATH"])
    return subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, timeout=60)


def table():
    return [case for case in _table()["cases"] if case.get("values")]


def no_numbers():
    """Returns texts that are none, each with the line that it makes all the same."""
    return [(case["text"], case["line"]) for case in _table()["no_numbers"]]


def _table():
    with open(TABLE, encoding="utf-8") as f:
        return json.load(f)


def call(case):
    """Returns the arguments of the call that a case of the table makes."""
    kinds = {"float": float, "int": int, "bool": bool, "text": str}
    metrics = {v["name"]: kinds[k](v[k]) for v in case["values"] for k in v if k != "name"}
    options = {k: case[k] for k in ("step", "unit") if k in case}
    if "units" in case:
        options["unit"] = dict(case["units"])
    if "labels" in case:
        options["labels"] = dict(case["labels"])
    if "time" in case:
        options["time"] = float(case["time"])
    return metrics, options


def start(*functions):
    """Runs the functions in threads and waits for them."""
    threads = [threading.Thread(target=f) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
