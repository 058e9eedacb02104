"""How long it takes to import poem, and whether a second process compiles anything."""

import subprocess
import sys

from benchmarks.timing import ratio, side_by_side


def run(rounds: int = 7) -> dict[str, float]:
    """Return the time of ``import poem`` over that of ``import sklearn.linear_model``."""

    def importing(module: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    seconds = side_by_side(
        {"poem": lambda: importing("poem"), "sklearn": lambda: importing("sklearn.linear_model")}, rounds
    )
    return {"import poem / import sklearn.linear_model": ratio(seconds, "poem", "sklearn")}
