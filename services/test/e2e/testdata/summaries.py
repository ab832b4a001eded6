"""What the samples of a run come to, computed from its exported samples by other
means than the platform's: Python's statistics, and exact whole numbers for the
interval. Prints one JSON object a metric."""
import json
import math
import statistics
import sys

series = {}
for line in sys.stdin:
    s = json.loads(line)
    series.setdefault(s["metric"], []).append(float(s["value"]))


def quantile(values, q):
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[q - 1]


def interval(values):
    """The narrowest symmetric ranks that hold the median with 95 %, exactly."""
    n, ordered = len(values), sorted(values)
    for low in range((n + 1) // 2, 0, -1):
        outside = 2 * sum(math.comb(n, k) for k in range(low))
        if 100 * (2**n - outside) >= 95 * 2**n:
            return {"low": ordered[low - 1], "high": ordered[n - low], "level": (2**n - outside) / 2**n}
    return None


for metric, values in sorted(series.items()):
    print(json.dumps({
        "metric": metric, "n": len(values), "min": min(values), "max": max(values),
        "median": statistics.median(values), "p90": quantile(values, 90), "p95": quantile(values, 95), "p99": quantile(values, 99),
        "mean": statistics.fmean(values), "sd": statistics.stdev(values) if len(values) > 1 else None,
        "first": values[0], "last": values[-1], "interval": interval(values),
    }))
