"""Steps, units, labels, times, and the timing of blocks."""

import datetime
import decimal
import fractions
import json
import time
import unittest
from unittest import mock

from support import Case, start

from benchmarkai import _timed, timed


class Index:
    """As NumPy's integers are, and a float too."""

    def __index__(self):
        return 7

    def __float__(self):
        return 7.5


class Float:
    """As NumPy's floats are, and tensors of one element."""

    def __float__(self):
        return 0.25


class Tensor:
    """As tensors of several elements are."""

    def __float__(self):
        raise RuntimeError("more than one element")


class Extras(Case):
    def line(self, metrics, **options):
        self.emitter(BENCHMARK_AI_FILE=self.file).emit(metrics, **{"time": 0, **options})
        return self.lines()[-1].replace(', "@time": 0.000000000', "")

    def test_a_number_of_other_libraries(self):
        numbers = {"a": Index(), "b": Float(), "c": decimal.Decimal("1.5"), "d": fractions.Fraction(1, 4)}
        self.assertEqual('{"a": 7, "b": 0.25, "c": 1.5, "d": 0.25}', self.line(numbers))
        with self.assertRaisesRegex(TypeError, "Tensor is neither a number"):
            self.line({"a": Tensor()})

    def test_a_step_is_a_whole_number(self):
        self.assertEqual('{"a": 1, "@step": 7}', self.line({"a": 1}, step=Index()))
        for step in (1.5, "1"):
            with self.assertRaises(TypeError):
                self.line({"a": 1}, step=step)

    def test_a_unit_is_a_text_or_some(self):
        self.assertEqual('{"a": 1, "@unit": "s"}', self.line({"a": 1}, unit="s"))
        self.assertEqual('{"a": 1, "@unit": {"a": "s"}}', self.line({"a": 1}, unit={"a": "s"}))
        for unit in (5, ["s"], {"a": 5}):
            with self.assertRaises(TypeError):
                self.line({"a": 1}, unit=unit)

    def test_labels_are_texts_and_what_can_be_one(self):
        labels = {"a": "x", "b": 1, "c": True, "d": 0.5, "e": None}
        self.assertEqual('{"a": 1, "@labels": {"a": "x", "b": 1, "c": true, "d": "0.5", "e": "None"}}', self.line({"a": 1}, labels=labels))
        self.assertEqual('{"a": 1}', self.line({"a": 1}, labels={}))
        with self.assertRaises(TypeError):
            self.line({"a": 1}, labels=["x"])

    def test_a_time_is_in_seconds_or_a_datetime(self):
        zone = datetime.timezone(datetime.timedelta(hours=1))
        times = {
            1767323045: "1767323045.000000000",
            1767323045.25: "1767323045.250000000",
            datetime.datetime(2026, 1, 2, 4, 4, 5, 123456, zone): "1767323045.123456000",
        }
        for t, want in times.items():
            self.assertEqual(f'{{"a": 1, "@time": {want}}}', self.line({"a": 1}, time=t))
        for t in (-1, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                self.line({"a": 1}, time=t)

    def test_a_line_that_says_its_time_itself_is_left_alone(self):
        self.assertEqual('{"a": 1, "@time": 5}', self.line({"a": 1, "@time": 5}, time=None))


class Timed(Case):
    def setUp(self):
        super().setUp()
        patch = mock.patch.object(_timed, "emit", self.emitter(BENCHMARK_AI_FILE=self.file).emit)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_block(self):
        with timed("load", step=3, labels={"cache": "cold"}) as t:
            time.sleep(0.01)
        line = json.loads(self.lines()[0])
        self.assertEqual((t.seconds, "s", 3, {"cache": "cold"}), (line["load"], line["@unit"], line["@step"], line["@labels"]))
        self.assertGreaterEqual(t.seconds, 0.01)

    def test_a_function_each_time_that_it_is_called_also_by_several_threads(self):
        @timed("f")
        def f(depth=1):
            """Is f."""
            time.sleep(0.001)
            return depth and f(depth - 1)

        start(f, f)
        self.assertEqual("Is f.", f.__doc__)
        self.assertEqual(4, len(self.lines()))

    def test_a_block_that_raises_emits_nothing(self):
        with self.assertRaises(KeyError), timed("load"):
            raise KeyError
        with timed("after"):
            pass
        self.assertEqual(1, len(self.lines()))


if __name__ == "__main__":
    unittest.main()
