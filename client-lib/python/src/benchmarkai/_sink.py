"""Where lines go. Each class has write(line), which raises OSError."""

from __future__ import annotations

import errno
import os
import select
import sys
import time
from collections.abc import Mapping
from typing import Optional, Union

DEFAULT_FIFO = "/tmp/benchmark-ai/fifo"


class FifoNotCreatedInTimeError(Exception):
    """The FIFO was not made within BENCHMARK_AI_FIFO_MAX_WAIT_TIME."""


class Stdout:
    """Prints lines to standard output, flushed at once."""

    stamps = False

    def write(self, line: str) -> None:
        try:
            print(line, flush=True)
        except ValueError as err:  # closed
            raise OSError(errno.EBADF, str(err)) from err

    def forget(self) -> None:
        pass


class File:
    """Appends lines to a file, each by one write, which other processes' do not tear."""

    stamps = True
    block = 1.0
    """Seconds that a write to a FIFO waits for its reader."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._cut = False  # the last line of the file has no end
        self._stalled = False  # a write has waited in vain since the last that did not

    def write(self, line: str) -> None:
        data = line.encode("ascii") + b"\n"
        if self._fd < 0:
            self._fd = self._open()
        try:
            if self._cut:
                self._put(b"\n")
                self._cut = False
            self._put(data)
        except OSError as err:
            if err.errno in (errno.EPIPE, errno.EBADF):
                self.forget()
            raise

    def _put(self, data: bytes) -> None:
        sent = 0
        try:
            while sent < len(data):
                try:
                    sent += os.write(self._fd, data[sent:])
                except BlockingIOError:
                    if not self._writable():
                        raise
        except OSError:
            # A line that was cut is written once more as a whole, after the end of
            # its beginning, which reads as none: it has no closing brace. Until that
            # end is written the line stays cut, however often it is tried.
            self._cut = self._cut or sent > 0
            if 0 < sent == len(data) - 1:
                return  # but for its end
            raise
        self._stalled = False

    def _writable(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        self._stalled = not poll.poll(0 if self._stalled else self.block * 1000)
        return not self._stalled

    def _open(self) -> int:
        fd = os.open(self.path, _FLAGS | os.O_CREAT, 0o666)
        self._cut = self._cut or self._torn()
        return fd

    def _torn(self) -> bool:
        """Whether the file ends in a line without an end, as of a program that was killed. A byte
        that is 0 is one whose space the collector has released."""
        try:
            size = os.path.getsize(self.path) if os.path.isfile(self.path) else 0
            if size == 0:
                return False
            with open(self.path, "rb") as file:
                file.seek(size - 1)
                return file.read(1) not in (b"\n", b"\0", b"")
        except OSError:
            return False

    def forget(self) -> None:
        """Has the next write open the file anew."""
        if self._fd >= 0:
            try:
                os.close(self._fd)
            except OSError:
                pass
            self._fd = -1


_FLAGS = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Fifo(File):
    """Writes lines to a FIFO that another process makes and reads."""

    stamps = False

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ.get("BENCHMARK_AI_FIFO_FILEPATH") or DEFAULT_FIFO)
        self._environ = environ
        self._was_there = False

    def _open(self) -> int:
        most = _seconds(self._environ, "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", 10)
        step = _seconds(self._environ, "BENCHMARK_AI_FIFO_WAIT_TIME_STEP", 0.5) or 0.5
        waited = 0.0
        while not self._was_there and not os.path.exists(self.path):
            if waited > most:
                raise FifoNotCreatedInTimeError(f"{self.path} was not made within {waited:g} s")
            print(f"[benchmark ai] DEBUG - {self.path} is not there yet, sleeping for {step:g} seconds", flush=True)
            _sleep(step)
            waited += step
        while True:
            try:
                fd = os.open(self.path, _FLAGS)
                self._was_there = True
                return fd
            except OSError as err:
                # Who made it may not have opened it yet. That is waited for once.
                if err.errno != errno.ENXIO or self._was_there or waited > most:
                    self._was_there = True
                    raise
            _sleep(0.05)
            waited += 0.05


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name) or str(default)
    try:
        seconds = float(text)
        if 0 <= seconds < 1e9:
            return seconds
    except ValueError:
        pass
    raise ValueError(f"{name}: {text!r} is no number of seconds")


def choose(environ: Mapping[str, str]) -> Union[Stdout, File]:
    """Returns where lines go. It opens nothing yet."""
    given: Optional[str] = environ.get("BENCHMARK_AI") or None
    backend = given.lower() if given else None
    if backend not in (None, "stdout", "fifo"):
        raise ValueError(f"BENCHMARK_AI: {given!r} is none of stdout and fifo")
    if environ.get("BENCHMARK_AI_FILE") and backend != "stdout":
        return File(environ["BENCHMARK_AI_FILE"])
    if backend == "fifo":
        return Fifo(environ)
    return Stdout()


def complain(text: str) -> None:
    """Says on standard error what nobody else could be told."""
    try:
        print(f"benchmarkai: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
