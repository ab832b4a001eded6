"""Tells the platform what a benchmark measures.

    from benchmarkai import emit

    emit({"loss": 0.25, "accuracy": 0.91}, step=7)

Where the values go is read from the environment:

=================================  =================================================
BENCHMARK_AI                       ``stdout`` (default) or ``fifo``, in any case of
                                   letters; another is a ValueError at import
BENCHMARK_AI_FILE                  the metrics file; where it is set, lines are
                                   appended to it unless BENCHMARK_AI is ``stdout``
BENCHMARK_AI_FIFO_FILEPATH         the FIFO; ``/tmp/benchmark-ai/fifo`` by default
BENCHMARK_AI_FIFO_MAX_WAIT_TIME    seconds to wait for the FIFO; 10 by default
BENCHMARK_AI_FIFO_WAIT_TIME_STEP   seconds between looks; 0.5 by default
BENCHMARK_AI_STRICT                ``1``: what cannot be written raises EmitError
=================================  =================================================

In a run's pod all of it is set, and lines go to the metrics file. Elsewhere they
are printed.
"""

from ._emitter import EmitError, emit, flush
from ._sink import FifoNotCreatedInTimeError
from ._timed import timed

__all__ = ["EmitError", "FifoNotCreatedInTimeError", "emit", "flush", "timed"]
__version__ = "1.0.0"
