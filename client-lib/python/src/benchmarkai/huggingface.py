"""A callback for the Trainer of Hugging Face's transformers.

    from benchmarkai.huggingface import Emit

    Trainer(..., callbacks=[Emit()])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ._trainers import base, emit_numbers

_Base: Any = base(("transformers.trainer_callback",), "TrainerCallback")


class Emit(_Base):  # type: ignore[misc]
    """Emits what the trainer logs, as often as it does (``logging_steps``), with the global
    step. Of several processes the first emits."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None, **unused: Any) -> None:
        if state.is_world_process_zero:
            emit_numbers(logs, state.global_step)
