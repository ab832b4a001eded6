"""What the callbacks for trainers share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from ._emitter import emit
from ._line import number


class _Callback:
    """Stands in for a library's own class where the library is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("on_", "set_")):
            return lambda *args, **kwargs: None
        raise AttributeError(name)


def base(modules: Iterable[str], name: str) -> Any:
    """Returns the class of that name from the first of the modules there is, one that is imported already before others."""
    for module in sorted(modules, key=lambda m: m.partition(".")[0] not in sys.modules):
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return _Callback


def emit_numbers(logs: Optional[Mapping[str, Any]], step: int, prefix: str = "") -> None:
    """Emits those of logs that are numbers."""
    metrics = {}
    for name, value in (logs or {}).items():
        if not isinstance(value, str):
            try:
                metrics[f"{prefix}{name}"] = number(value)
            except TypeError:
                continue
    if metrics:
        emit(metrics, step=step)
