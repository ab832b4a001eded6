import contextlib
import io
import os
import time
import unittest

from support import Case, call, no_numbers, table, without_time


class TheTable(Case):
    def emit(self, emitter):
        for case in table():
            metrics, options = call(case)
            emitter.emit(metrics, **options)

    def want(self):
        return [case["line"] for case in table()]

    def test_is_printed_outside_of_a_pod(self):
        for environ in ({}, {"BENCHMARK_AI": "stdout"}, {"BENCHMARK_AI": "stdout", "BENCHMARK_AI_FILE": self.file}, {"BENCHMARK_AI": "STDOUT", "BENCHMARK_AI_FILE": self.file}):
            with self.subTest(environ=environ):
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    self.emit(self.emitter(**environ))
                self.assertEqual(self.want(), out.getvalue().splitlines())
        self.assertFalse(os.path.exists(self.file))

    def test_is_appended_to_the_metrics_file_with_the_time(self):
        with open(self.file, "w") as f:
            f.write('{"before": 1}\n')
        begin = time.time_ns()
        self.emit(self.emitter(BENCHMARK_AI="fifo", BENCHMARK_AI_FILE=self.file, BENCHMARK_AI_FIFO_FILEPATH=self.fifo))
        end = time.time_ns()
        first, *lines = self.lines()
        self.assertEqual('{"before": 1}', first)
        for case, line in zip(table(), lines):
            if "time" in case:
                self.assertEqual(case["line"], line)
                continue
            self.assertEqual(case["line"], without_time(line))
            seconds, _, fraction = line[:-1].rpartition(', "@time": ')[2].partition(".")
            self.assertEqual(9, len(fraction))
            self.assertTrue(begin <= int(seconds + fraction) <= end, line)
        self.assertEqual(len(table()), len(lines))

    def test_is_written_to_the_fifo_where_there_is_no_file(self):
        reader = self.reader()
        self.emit(self.emitter(BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=self.fifo))
        self.assertEqual(self.want(), os.read(reader, 1 << 20).decode().splitlines())

    def test_has_texts_that_are_no_numbers_written_as_the_original_does(self):
        emitter = self.emitter(BENCHMARK_AI_FILE=self.file)
        for text, _ in no_numbers():
            emitter.emit({"a": text})
        self.assertEqual([line for _, line in no_numbers()], [without_time(line) for line in self.lines()])


if __name__ == "__main__":
    unittest.main()
