"""Log, learn, deploy, three times over: every round learns from the pooled logs of all rounds before."""

import numpy as np
from sklearn.datasets import load_digits

import poem

FLOOR = 0.05  # of the decisions stay random, so that the next log can be learnt from

# A fresh batch of users each round, and some for the truth. Here it is known; in production it is not.
X, digit = load_digits(return_X_y=True)
X, order = X / 16, np.random.default_rng(0).permutation(len(X))
*batches, test = np.array_split(order, [150, 500, 900])

running: poem.Policy | poem.FlooredPolicy = poem.uniform_policy(
    poem.BanditLog(X[:10], digit[:10], loss=np.zeros(10), propensity=np.ones(10), labels=range(10))
)
loggers, logs, start = {}, [], None
print(f"before   expected loss {running.expected_loss(X[test], digit[test]):.3f}")
for number, users in enumerate(batches, start=1):
    # Log with what is running.
    name = f"round {number}"
    log = poem.simulate(X[users], digit[users], running, replay=4, rng=number)
    logs.append(log.with_loggers(np.full(len(log), name)))
    loggers[name] = running

    # Learn from all logs so far, weighted as the mixture that made them, from where the last round ended.
    pooled = poem.balanced(poem.BanditLog.concat(logs), loggers)
    result = poem.fit(pooled, start=start, loss_bounds=(0, 1))
    print(f"\n{name}: {len(pooled):,} rows\n{result.explain()}")

    # Deploy it with a floor.
    start = result.policy
    running = start.with_floor(FLOOR)
    truth = start.expected_loss(X[test], digit[test])
    print(f"{name}  expected loss {truth:.3f}, with its floor {running.expected_loss(X[test], digit[test]):.3f}")
