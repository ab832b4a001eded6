from __future__ import annotations

import time
from contextlib import ContextDecorator
from typing import Any, Optional

from . import _line
from ._emitter import emit


class timed(ContextDecorator):
    """Emits how many seconds a block or a function took, with the unit s.

        with timed("load", labels={"cache": "cold"}):
            load()

        @timed("step")
        def step(): ...

    A block that raises emits nothing. ``seconds`` is what was emitted.
    """

    def __init__(self, name: str, *, step: Optional[int] = None, labels: Optional[_line.Labels] = None) -> None:
        self._name, self._step, self._labels = name, step, labels
        self._begin = 0
        self.seconds: Optional[float] = None

    def _recreate_cm(self) -> timed:  # each call of a function has its own
        return timed(self._name, step=self._step, labels=self._labels)

    def __enter__(self) -> timed:
        self._begin = time.perf_counter_ns()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.seconds = (time.perf_counter_ns() - self._begin) / 1e9
            emit({self._name: self.seconds}, unit="s", step=self._step, labels=self._labels)
