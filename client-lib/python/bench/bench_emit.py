"""Measures what a call of emit costs: python3 bench/bench_emit.py [MOST_MICROSECONDS]

Prints the median and the best of several rounds, and the processor time of the
best, for a metrics file and for a FIFO. With an argument, exits with 1 where the
latter, for one value and the file, is above it: what else the machine does adds to
the others.
"""

import os
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))
from benchmarkai import _emitter  # noqa: E402

CALLS, ROUNDS = 5_000, 20
CASES = {
    "one value": ({"loss": 0.2534}, {}),
    "one value, step and unit": ({"loss": 0.2534}, {"step": 1200, "unit": "1"}),
    "one value, step, unit and label": ({"loss": 0.2534}, {"step": 1200, "unit": "1", "labels": {"gpu": "0"}}),
    "ten values": ({f"metric{i}": i / 7 for i in range(10)}, {}),
}


def measure(emitter, metrics, options):
    rounds = []
    for _ in range(ROUNDS):
        begin, cpu = time.perf_counter(), time.thread_time()
        for _ in range(CALLS):
            emitter.emit(metrics, **options)
        took = time.perf_counter() - begin, time.thread_time() - cpu
        rounds.append(tuple(t / CALLS * 1e6 for t in took))
    return rounds


def drain(path):
    with open(path, "rb", buffering=0) as fifo:
        while fifo.read(1 << 20):
            pass


def main():
    bar = 0.0
    with tempfile.TemporaryDirectory() as dir:
        fifo = os.path.join(dir, "fifo")
        os.mkfifo(fifo)
        threading.Thread(target=drain, args=(fifo,), daemon=True).start()
        backends = {
            "file": {"BENCHMARK_AI_FILE": os.path.join(dir, "metrics")},
            "fifo": {"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": fifo},
        }
        for backend, environ in backends.items():
            emitter = _emitter.Emitter(environ)
            for name, (metrics, options) in CASES.items():
                rounds = measure(emitter, metrics, options)
                median, (best, cpu) = statistics.median(took for took, _ in rounds), min(rounds)
                print(f"{backend}: {name}: {median:.1f} µs a call (best {best:.1f}, {cpu:.1f} of the processor)")
                if backend == "file" and name == "one value":
                    bar = cpu
            if emitter.close():
                sys.exit("lines were dropped")
    if len(sys.argv) > 1 and bar > float(sys.argv[1]):
        sys.exit(f"one value took {bar:.1f} µs of the processor, more than {sys.argv[1]}")


main()
