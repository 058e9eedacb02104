"""L-BFGS on the exact objective, scipy's."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import optimize

from poem.arrays import FloatArray
from poem.optimizers.base import OnStep, Optimizer, Problem, Trace, start_of


@dataclass(frozen=True)
class LBFGS(Optimizer):
    """Limited-memory BFGS.

    ``corrections`` past steps are remembered, each at the price of two weight vectors. ``ftol`` is
    relative to the objective's size (1 at least), ``gtol`` bounds the largest gradient entry.
    """

    max_iterations: int = 1000
    ftol: float = 1e-6
    gtol: float = 1e-6
    corrections: int = 8

    def minimize(
        self,
        problem: Problem,
        start: FloatArray | None = None,
        *,
        rng: Generator | None = None,
        on_step: OnStep | None = None,
    ) -> Trace:
        begin = time.perf_counter()
        curve: list[tuple[float, float]] = []

        def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
            value, grad = problem(flat.reshape(problem.shape))
            if not curve:
                curve.append((time.perf_counter() - begin, value))
            return value, grad.reshape(-1)

        def step_done(intermediate_result: Any) -> None:
            value = float(intermediate_result.fun)
            curve.append((time.perf_counter() - begin, value))
            if on_step is not None:
                on_step(len(curve) - 1, value)

        found = optimize.minimize(
            evaluate,
            start_of(problem, start).reshape(-1),
            jac=True,
            method="L-BFGS-B",
            callback=step_done,
            options={
                "maxiter": self.max_iterations,
                "maxfun": 10 * self.max_iterations,
                "ftol": self.ftol,
                "gtol": self.gtol,
                "maxcor": self.corrections,
            },
        )
        return Trace(
            weights=np.asarray(found.x).reshape(problem.shape),
            value=float(found.fun),
            steps=int(found.nit),
            seconds=time.perf_counter() - begin,
            converged=bool(found.success),
            reason=str(found.message),
            curve=curve,
        )

    def settings(self) -> dict[str, Any]:
        return {"name": "LBFGS", **asdict(self)}
