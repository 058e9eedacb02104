"""Run all benchmarks, or those named: objective, adagrad, candidates, memory, starting, evaluation, reading,
certificate, default_fit, deciding, loss_models, scale."""

import importlib
import sys

LIMITS = {
    "peak memory / allowed, default, 1 worker(s)": "≤ 1.0",
    "peak memory / allowed, default, 2 worker(s)": "≤ 1.0",
    "objective / two scipy products, two threads": "≤ 1.0",
    "replay 64 / replay 4": "≤ 3",
    "AdaGrad rows a second / Vowpal Wabbit's": "≥ 5",
    "candidates per second, AdaGrad / Vowpal Wabbit's ips": "≥ 5",
    "candidates per second, AdaGrad / Vowpal Wabbit's mtr": "≥ 5",
    "candidates per second, objective / Vowpal Wabbit's ips": "≥ 5",
    "candidates per second, objective / Vowpal Wabbit's mtr": "≥ 5",
    "510,000 candidates, ragged / requests of 5, objective": "≤ 1.2",
    "510,000 candidates, ragged / requests of 5, AdaGrad": "≤ 1.2",
    "default fit, 200,000 × 30 × 10, trees, s": "≤ 60",
    "default fit, 200,000 × 30 × 10, linear, s": "≤ 60",
    "default fit, 1,000,000 × 30 × 20, trees, s": "≤ 300",
    "default fit, 1,000,000 × 30 × 20, linear, s": "≤ 300",
    "default fit, 60,000 requests, features, s": "≤ 60",
    "default fit, 60,000 requests, features and identities, s": "≤ 60",
    "predict with trees, 10 classes, thousand contexts/s": "≥ 200",
    "pass over shards / in memory, 1 M rows": "≤ 1.5",
    "pass over shards / in memory, 2 M rows": "≤ 1.5",
    "packing CSV, 1 M rows, thousand rows per second": "≥ 100",
    "packing Parquet, 1 M rows, thousand rows per second": "≥ 300",
    "packing Parquet, 2 M rows, thousand rows per second": "≥ 300",
    "import poem / import sklearn.linear_model": "≤ 1.5",
    "IPS of a million rows / scipy X @ W": "≤ 4",
    "SNIPS of a million rows / scipy X @ W": "≤ 4",
    "DR of a million rows / scipy X @ W": "≤ 4",
    "bootstrap, 1000 × a million rows, s": "≤ 10",
    "evaluation, peak memory / the log": "≤ 2",
    "Parquet, poem / pyarrow": "≤ 3",
    "Parquet, peak memory / the log": "≤ 3",
    "CSV, read into a table / pyarrow": "≤ 2",
    "CSV, made into a log / pyarrow": "≤ 4",
    "JSON lines, read into a table / pyarrow": "≤ 2",
    "VW text, thousand lines a second": "≥ 50",
    "VW text, thousand requests of 10 a second": "≥ 50",
    "DSJSON, the same articles, thousand requests a second": "≥ 20",
    "DSJSON, new articles, thousand requests a second": "≥ 20",
    "poem --help, s": "≤ 0.7",
    "certificate on a million rows, s": "≤ 2",
    "poem inspect of a million rows, s": "≤ 15",
}


def main(names: list[str]) -> None:
    """Print every figure beside the limit that it must keep to."""
    figures: dict[str, float] = {}
    usual = ["starting", "memory", "objective", "adagrad", "candidates", "evaluation", "reading", "certificate"]
    usual += ["default_fit", "deciding"]
    for name in names or usual:
        figures |= importlib.import_module(f"benchmarks.{name}").run()
    print()
    for name, value in figures.items():
        limit = LIMITS.get(name, "≤ 1.0" if name.startswith("peak memory") else "")
        print(f"{name:<56} {value:6.2f}  {limit}")


if __name__ == "__main__":
    main(sys.argv[1:])
