"""Log, learn, deploy, three times over: every round learns from the pooled logs of all rounds so far."""

import numpy as np
from sklearn.datasets import load_digits

import poem

FLOOR = 0.05  # of the decisions stay random, so that the next log can be learnt from

# A fresh batch of users each round, and some for the truth. Here it is known; in production it is not.
X, digit = load_digits(return_X_y=True)
X, order = X / 16, np.random.default_rng(0).permutation(len(X))
*batches, test = np.array_split(order, [250, 600, 1200])

# Before the first round, nothing is known: every digit has the same probability.
first = poem.BanditLog(X[:10], digit[:10], loss=np.zeros(10), propensity=np.ones(10), labels=range(10))
running: poem.Policy | poem.FlooredPolicy = poem.uniform_policy(first)
loggers, logs = {}, []
print(f"before: expected loss {running.expected_loss(X[test], digit[test]):.3f}")
for number, users in enumerate(batches, start=1):
    # Log with what is running.
    name = f"round {number}"
    log = poem.simulate(X[users], digit[users], running, replay=4, rng=number)
    learn, fresh = log.split(0.4, rng=number, by="unit")
    logs.append(learn.with_loggers(np.full(len(learn), name)))
    loggers[name] = running

    # Learn from all logs so far, weighted as the mixture of policies that made them. What is better than the policy
    # that runs now is certified on its own fresh rows.
    pooled = poem.balanced(poem.BanditLog.concat(logs), loggers)
    result = poem.fit(pooled, validation=fresh, logging_policy=running, loss_bounds=(0, 1))
    print(f"\n{name}: a loss of {log.loss.mean():.3f} was logged; {len(pooled):,} rows to learn from")
    print(result.explain())

    # Deploy it with a floor, or keep what is running if nothing was certified.
    if result.certified:
        running = result.policy.with_floor(FLOOR)
    print(f"{name}: expected loss of what runs now {running.expected_loss(X[test], digit[test]):.3f}")
