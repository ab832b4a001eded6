"""What a line says. No I/O, no clock."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Union

Unit = Union[str, Mapping[str, str]]
Labels = Mapping[str, Union[str, int, float, bool]]
Time = Union[int, float, datetime]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def number(value: Any) -> Union[int, float]:
    """Returns the number that value is: one of NumPy's, a tensor of one element, a Decimal."""
    for convert in () if isinstance(value, (bytes, bytearray)) else (operator.index, float):
        try:
            return convert(value)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            pass
    raise TypeError(f"{type(value).__name__} is neither a number nor otherwise JSON serializable: {value!r:.100}")


_encode = json.JSONEncoder(default=number).encode


def encode(metrics: Mapping[str, Any]) -> str:
    """Returns the metrics as an object, with the separators and escapes of json.dumps."""
    if type(metrics) is not dict:
        if not isinstance(metrics, Mapping):
            raise TypeError(f"metrics must be a mapping of names to numbers, not {type(metrics).__name__}")
        metrics = dict(metrics)
    if not metrics:
        raise ValueError("metrics must not be empty")
    return _encode(metrics)


def options(step: Optional[int], unit: Optional[Unit], labels: Optional[Labels], time: Optional[Time]) -> str:
    """Returns what a line says about all of its metrics, each with a comma before."""
    text = ""
    if step is not None:
        text += f', "@step": {operator.index(step)}'
    if unit is not None:
        text += f', "@unit": {_unit(unit)}'
    if labels:
        text += f', "@labels": {_labels(labels)}'
    if time is not None:
        text += f', "@time": {_time(time)}'
    return text


def stamp(nanoseconds: int) -> str:
    """Returns the member that says when, digit by digit: no float holds the nanoseconds of our days."""
    return ', "@time": %d.%09d' % divmod(nanoseconds, 1_000_000_000)


def _unit(unit: Unit) -> str:
    if isinstance(unit, str):
        return _encode(unit)
    if not isinstance(unit, Mapping) or not all(isinstance(v, str) for v in unit.values()):
        raise TypeError("unit must be a string, or a mapping of metrics to strings")
    return _encode(dict(unit))


def _labels(labels: Labels) -> str:
    if not isinstance(labels, Mapping):
        raise TypeError(f"labels must be a mapping of names to strings, not {type(labels).__name__}")
    return _encode({str(k): v if isinstance(v, (str, bool, int)) else str(v) for k, v in labels.items()})


def _time(time: Time) -> str:
    if isinstance(time, datetime):
        microseconds = (time.astimezone(timezone.utc) - _EPOCH) // timedelta(microseconds=1)
        return "%d.%06d000" % divmod(microseconds, 1_000_000)
    if not math.isfinite(time) or time < 0:
        raise ValueError(f"time must be in seconds since 1970, not {time}")
    return "%.9f" % time if isinstance(time, float) else f"{operator.index(time)}.000000000"
