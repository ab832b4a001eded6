"""A callback for PyTorch Lightning (``lightning.pytorch`` or ``pytorch_lightning``).

    from benchmarkai.lightning import Emit

    Trainer(callbacks=[Emit()])
"""

from __future__ import annotations

from typing import Any

from ._trainers import base, emit_numbers

_Base: Any = base(("lightning.pytorch.callbacks", "pytorch_lightning.callbacks"), "Callback")


class Emit(_Base):  # type: ignore[misc]
    """Emits ``trainer.callback_metrics``, with the global step, at the end of each epoch
    of a fit, of a validation or test run, and after each ``every_n_steps`` steps, if
    that is not 0. Of several processes the first emits."""

    def __init__(self, every_n_steps: int = 0) -> None:
        super().__init__()
        self.every_n_steps = every_n_steps
        self._last = -1

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, *unused: Any) -> None:
        step = trainer.global_step
        if self.every_n_steps and step not in (0, self._last) and step % self.every_n_steps == 0:
            self._last = step  # with accumulated gradients several batches make one step, and the first may end before any
            self._emit(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._emit(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.state.fn == "validate":  # else it is part of a fit, whose epoch ends after it
            self._emit(trainer)

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._emit(trainer)

    def _emit(self, trainer: Any) -> None:
        if trainer.is_global_zero:
            emit_numbers(trainer.callback_metrics, trainer.global_step)
