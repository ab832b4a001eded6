"""A callback for Keras.

    from benchmarkai.keras import Emit

    model.fit(..., callbacks=[Emit()])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ._trainers import base, emit_numbers

_Base: Any = base(("keras.callbacks",), "Callback")


class Emit(_Base):  # type: ignore[misc]
    """Emits the logs of each epoch, with the epoch as step; after each ``every_n_batches``
    batches, if that is not 0, those of the batch as ``batch_loss`` and so on, with the
    batches since the beginning as step; and those of ``evaluate`` as ``test_loss`` and
    so on."""

    def __init__(self, every_n_batches: int = 0) -> None:
        super().__init__()
        self.every_n_batches = every_n_batches
        self._fits = False
        self._batches = 0
        self._epoch = 0

    def on_train_begin(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._fits = True

    def on_train_end(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._fits = False

    def on_train_batch_end(self, batch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._batches += 1
        if self.every_n_batches and self._batches % self.every_n_batches == 0:
            emit_numbers(logs, self._batches, "batch_")

    def on_epoch_end(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._epoch = epoch
        emit_numbers(logs, epoch)

    def on_test_end(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        if not self._fits:  # else it is part of an epoch, whose logs hold it
            emit_numbers(logs, self._epoch, "test_")
