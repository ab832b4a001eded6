"""Trains a small convolutional network to read drawn digits, on the processor,
and says after each epoch how well it does and how fast it was.

DATA is the data set (see make_data.py), EPOCHS how often to go through it. The
same seed, data and release of PyTorch on the same kind of processor give the same
numbers, but for the speed.
"""

import gzip
import os
import sys
import time

try:
    import torch
    from torch import nn
except ImportError as err:
    sys.exit(
        f"training: {sys.executable} has no PyTorch ({err}). Install it (Debian: apt-get install python3-torch; "
        "else: pip install torch), name a Python that has it with --set env.vars.PYTHON=/usr/bin/python3, "
        "or run the benchmark on a cluster, in an image that holds it."
    )

try:
    from benchmarkai import emit
except ImportError:  # without the client library: what it does, in short

    def emit(metrics, step=None, unit=None):
        import json

        line = dict(metrics, **{"@step": step, "@unit": unit, "@time": round(time.time(), 6)})
        with open(os.environ.get("BENCHMARK_AI_FILE", os.devnull), "a") as out:
            out.write(json.dumps(line) + "\n")


def load(path):
    """The drawings as N×1×8×8 from 0 to 1, and their digits."""
    with gzip.open(path, "rt") as lines:
        rows = [[int(v) for v in line.split(",")] for line in lines]
    table = torch.tensor(rows)
    return table[:, :64].float().div(9).reshape(-1, 1, 8, 8), table[:, 64]


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10),
    )


def epoch(model, optimizer, images, digits, order, batch=50):
    """Goes through the data once. Returns the mean loss, and the norm of the last gradient."""
    total = 0.0
    for at in range(0, len(order), batch):
        rows = order[at:at + batch]
        loss = nn.functional.cross_entropy(model(images[rows]), digits[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters())).item()
    return total / len(order), norm


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)  # sums of several threads depend on who was first
    images, digits = load(os.environ.get("DATA", "digits.csv.gz"))
    test = 500
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for number in range(1, int(os.environ.get("EPOCHS", "8")) + 1):
        order = test + torch.randperm(len(images) - test)
        begin = time.perf_counter()
        loss, norm = epoch(model, optimizer, images, digits, order)
        seconds = time.perf_counter() - begin
        with torch.no_grad():
            right = (model(images[:test]).argmax(1) == digits[:test]).float().mean().item()
        emit(
            {"loss": loss, "accuracy": right, "samples_per_second": len(order) / seconds},
            step=number, unit={"loss": "1", "accuracy": "1", "samples_per_second": "1/s"},
        )
        print(f"epoch {number}: loss {loss:.6f}, accuracy {right:.4f}, gradient={norm:.9g}", flush=True)


if __name__ == "__main__":
    main()
