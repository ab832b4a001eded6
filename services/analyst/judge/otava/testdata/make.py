#!/usr/bin/env python3
"""Writes what Apache Otava finds in the series of the tests: pip install apache-otava==0.8.0

The goldens come from Python 3.11.7 with numpy 2.2.0 and scipy 1.16.3. random_test.go makes
the same series; change both together.
"""

import json
import math
import pathlib

import numpy
from otava.series import AnalysisOptions, Metric, Series

KINDS = ["normal", "autoregressive", "integer", "constant parts", "constant", "missing", "huge", "overflow", "tiny", "skewed"]
MASK = 2**64 - 1


class Random:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def normal(self):
        total = 0.0
        for _ in range(12):
            total += (self.next() >> 11) * 2.0**-53
        return total - 6


def series(seed):
    r = Random(seed)
    length = 5 + r.next() % 396
    step = [0.0, 1.0, 3.0, 10.0][r.next() % 4]
    kind = KINDS[seed % len(KINDS)]
    level, noise = 0.0, 0.0
    for row in range(length):
        if r.next() % 40 == 0:
            level += step * r.normal()
        absent = r.next() % 4 == 0
        e = r.normal()
        noise = 0.7 * noise + e
        yield {
            "normal": 100 + level + e,
            "autoregressive": 100 + level + noise,
            "integer": float(math.floor(level + e)),
            "constant parts": level + (e if row // 25 % 2 else 0.0),
            "constant": 100 + level,
            "missing": None if absent else 100 + level + e,
            "huge": (level + e) * 1e300,
            "overflow": (level + e) * 1e307,
            "tiny": (level + e) * 1e-320,
            "skewed": e * e * e + level,
        }[kind]


def analyse(values, p, window, magnitude):
    options = AnalysisOptions()
    options.max_pvalue, options.window_len, options.min_magnitude = p, window, magnitude
    s = Series("test", None, list(range(len(values))), {"m": Metric()}, {"m": values}, {})
    return s.analyze(options).change_points["m"]


def write(name, rows):
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    pathlib.Path(__file__).with_name(name).write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    numpy.seterr(all="ignore")
    settings = [(p, window, 0.0) for p in (0.05, 0.001, 1e-5) for window in (30, 50)] + [(0.001, 50, 0.05)]
    write("indices.json", [
        {
            "p": p, "window": window, "magnitude": magnitude,
            "indices": [[int(c.index) for c in analyse(list(series(seed)), p, window, magnitude)] for seed in range(1000)],
        }
        for p, window, magnitude in settings
    ])
    write("changes.json", [
        [[int(c.index), float(c.mean_before()), float(c.mean_after()), float(c.pvalue())] for c in changes]
        for changes in (analyse(list(series(seed)), 0.001, 50, 0.0) for seed in range(50))
    ])
