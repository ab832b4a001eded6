from __future__ import annotations

import atexit
import os
import threading
import time as clock
from collections import deque
from collections.abc import Mapping
from typing import Any, Optional

from . import _line, _sink

_MOST = 4 << 20  # characters that wait where they cannot be written
_PAUSE = 0.1  # seconds between attempts


class EmitError(Exception):
    """A line could not be written, and BENCHMARK_AI_STRICT is 1."""


class Emitter:
    """Emits to the place that the environment names."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._sink = _sink.choose(environ)
        self._strict = environ.get("BENCHMARK_AI_STRICT", "") not in ("", "0")
        self._lock = threading.RLock()
        self._busy = False  # this thread is writing: it is a signal handler that emits now
        self._begin()

    def _begin(self) -> None:
        self._pending: deque[str] = deque()
        self._size = 0
        self._retry = 0.0
        self._emitted = 0
        self._dropped = 0
        self._reason: Optional[BaseException] = None
        self._said = False

    def emit(
        self,
        metrics: Mapping[str, Any],
        *,
        step: Optional[int] = None,
        unit: Optional[_line.Unit] = None,
        labels: Optional[_line.Labels] = None,
        time: Optional[_line.Time] = None,
    ) -> None:
        """Emits metrics, a mapping of names to numbers, as one line.

        A number may be Python's, NumPy's, or a tensor of one element. ``step`` says
        which step, iteration or epoch it is of; ``unit`` is a text for all metrics, or
        a mapping of metric to text; ``labels`` tell values of one name apart; ``time``
        says when it was measured, in seconds since 1970 or as a datetime, instead of now.

        The line is written when emit returns. Several threads and processes, also
        forked ones, may emit to one file: lines are whole and in the order of each.
        Where a line cannot be written it waits for the next call, up to 4 MiB, then is
        dropped and counted; what is not written when the program ends is said on
        standard error. Nothing is raised for it unless BENCHMARK_AI_STRICT is 1. A line
        that is printed takes as long as standard output makes it.

        A text that is a number counts as one. Whatever else is JSON is written too, as the
        original library does, and the platform says that it is no sample.

        Raises TypeError if metrics is no mapping or not JSON serializable, ValueError if
        it is empty, FifoNotCreatedInTimeError if there is to be a FIFO and is none.
        """
        text = _line.encode(metrics)
        if step is not None or unit is not None or labels or time is not None:
            text = f"{text[:-1]}{_line.options(step, unit, labels, time)}}}"
        with self._lock:
            if self._sink.stamps and time is None and "@time" not in metrics:
                text = f"{text[:-1]}{_line.stamp(clock.time_ns())}}}"
            if self._busy:
                self._emitted += 1
                self._keep(text)
                return
            self._busy = True
            try:
                self._write(text)
            finally:
                self._busy = False

    def _write(self, text: str) -> None:
        if not self._pending:
            try:
                self._sink.write(text)
            except OSError as err:
                self._failed(err)
                if self._strict:
                    raise EmitError(f"cannot emit: {err}") from err
                self._keep(text)
        else:
            self._keep(text)
        self._emitted += 1
        if self._pending and clock.monotonic() >= self._retry:
            self._catch_up()

    def _catch_up(self) -> bool:
        """Writes what waits, and reports whether that was all."""
        while self._pending:
            try:
                self._sink.write(self._pending[0])
            except OSError as err:
                self._failed(err)
                return False
            self._size -= len(self._pending.popleft())
        return True

    def _keep(self, text: str) -> None:
        if self._size + len(text) > _MOST:
            self._dropped += 1
            return
        self._pending.append(text)
        self._size += len(text)

    def _failed(self, err: BaseException) -> None:
        self._retry = clock.monotonic() + _PAUSE
        self._reason = err
        if not self._said and not self._strict:
            self._said = True
            _sink.complain(f"{err}: what is emitted waits")

    def flush(self, timeout: float = 2.0) -> bool:
        """Tries to write what could not be written, and reports whether nothing waits any more."""
        deadline = clock.monotonic() + timeout
        while True:
            with self._lock:
                if self._busy:
                    return False
                self._busy = True
                try:
                    if self._catch_up():
                        return True
                finally:
                    self._busy = False
            if clock.monotonic() >= deadline:
                return False
            clock.sleep(min(_PAUSE, timeout))

    def close(self, timeout: float = 2.0) -> int:
        """Flushes, says on standard error what was dropped, if anything was, and returns how much."""
        self.flush(timeout)
        with self._lock:
            self._dropped += len(self._pending)
            dropped, emitted, reason = self._dropped, self._emitted, self._reason
            self._sink.forget()
            self._begin()
        if dropped:
            _sink.complain(f"{dropped} of {emitted} dropped: {reason}")
        return dropped

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork(self) -> None:
        self._lock.release()

    def forked(self) -> None:
        """Leaves what waits to the parent."""
        self._lock = threading.RLock()
        self._busy = False
        self._begin()


_emitter = Emitter(os.environ)
atexit.register(_emitter.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_emitter.before_fork, after_in_parent=_emitter.after_fork, after_in_child=_emitter.forked
    )
emit = _emitter.emit
flush = _emitter.flush
