"""What the original client library does, its scripts may rely on."""

import collections
import contextlib
import io
import os
import threading
import types
import unittest
from unittest import mock

from support import Case, contents, python

from benchmarkai import FifoNotCreatedInTimeError, _sink


class TheOriginal(Case):
    def test_prints_by_default_what_json_dumps_makes_and_a_line_end(self):
        done = python("from benchmarkai import emit; emit({'metric': 0.1}); print('x')")
        self.assertEqual('{"metric": 0.1}\nx\n', done.stdout)
        self.assertEqual(("", 0), (done.stderr, done.returncode))

    def test_refuses_another_back_end_at_import(self):
        done = python("import benchmarkai", BENCHMARK_AI="kafka")
        self.assertIn("ValueError: BENCHMARK_AI: 'kafka' is none of stdout and fifo", done.stderr)

    def test_refuses_what_is_no_mapping(self):
        for what in ([1, 2], "string", None, {"set"}, 1, 1.5):
            with self.subTest(what=what), self.assertRaises(TypeError):
                self.emitter(BENCHMARK_AI_FILE=self.file).emit(what)
        self.assertFalse(os.path.exists(self.file))

    def test_refuses_an_empty_mapping(self):
        for what in ({}, types.MappingProxyType({})):
            with self.assertRaises(ValueError):
                self.emitter().emit(what)

    def test_refuses_what_json_does_not_know(self):
        for what in (object(), {1}, b"1", 1j, [object()]):
            with self.subTest(what=what), self.assertRaises(TypeError):
                self.emitter().emit({"a": what})

    def test_takes_any_mapping(self):
        for what in (types.MappingProxyType({"a": 1}), collections.OrderedDict(a=1), collections.Counter(a=1)):
            self.emitter(BENCHMARK_AI_FILE=self.file).emit(what, time=0)
        self.assertEqual(['{"a": 1, "@time": 0.000000000}'] * 3, self.lines())

    def test_says_that_it_waits_and_raises_once_it_has_waited_longer_than_the_most(self):
        slept, out = [], io.StringIO()
        emitter = self.emitter(
            BENCHMARK_AI="fifo",
            BENCHMARK_AI_FIFO_FILEPATH=self.fifo,
            BENCHMARK_AI_FIFO_MAX_WAIT_TIME="1.5",
            BENCHMARK_AI_FIFO_WAIT_TIME_STEP="0.5",
        )
        with mock.patch("benchmarkai._sink._sleep", slept.append), contextlib.redirect_stdout(out):
            with self.assertRaises(FifoNotCreatedInTimeError):
                emitter.emit({"metric": 1})
        self.assertEqual([0.5] * 4, slept)
        self.assertEqual(4, out.getvalue().count("DEBUG"))

    def test_waits_ten_seconds_by_default_for_the_fifo_at_its_place(self):
        slept = []
        with mock.patch("benchmarkai._sink._sleep", slept.append), mock.patch("os.path.exists", return_value=False) as exists:
            with contextlib.redirect_stdout(io.StringIO()), self.assertRaises(FifoNotCreatedInTimeError):
                self.emitter(BENCHMARK_AI="fifo").emit({"metric": 1})
        self.assertEqual(10.5, sum(slept))
        exists.assert_called_with("/tmp/benchmark-ai/fifo")

    def test_writes_once_the_fifo_is_there(self):
        read, readers, sleep = [], [], _sink._sleep

        def make(seconds):
            if readers:
                return sleep(seconds)
            os.mkfifo(self.fifo)
            readers.append(threading.Thread(target=lambda: read.append(contents(self.fifo))))
            readers[0].start()

        emitter = self.emitter(BENCHMARK_AI="FIFO", BENCHMARK_AI_FIFO_FILEPATH=self.fifo)
        with mock.patch("benchmarkai._sink._sleep", make), contextlib.redirect_stdout(io.StringIO()):
            emitter.emit({"metric": 1})
            emitter.emit({"metric": 2})
        emitter.close()
        readers[0].join()
        self.assertEqual(['{"metric": 1}\n{"metric": 2}\n'], read)

    def test_refuses_a_wait_that_is_no_number(self):
        for name in ("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "BENCHMARK_AI_FIFO_WAIT_TIME_STEP"):
            for value in ("1m", "-1", "nan"):
                environ = {"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": self.fifo, name: value}
                with self.assertRaisesRegex(ValueError, f"{name}: '{value}' is no number of seconds"):
                    self.emitter(**environ).emit({"metric": 1})


if __name__ == "__main__":
    unittest.main()
