"""How long it takes to import poem with all that a fit needs."""

import subprocess
import sys

from benchmarks.timing import ratio, side_by_side


def run(rounds: int = 7) -> dict[str, float]:
    """Return the time of ``from poem import fit`` over that of ``import sklearn.linear_model``."""

    def importing(module: str) -> None:
        subprocess.run([sys.executable, "-c", module], check=True)

    seconds = side_by_side(
        {
            "poem": lambda: importing("from poem import fit, evaluate"),
            "sklearn": lambda: importing("import sklearn.linear_model"),
        },
        rounds,
    )
    return {"import poem / import sklearn.linear_model": ratio(seconds, "poem", "sklearn")}
