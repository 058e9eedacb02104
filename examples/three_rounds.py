"""Log, learn and deploy in three rounds. Each round learns from the pooled logs of all rounds so far."""

import numpy as np
from sklearn.datasets import load_digits

import poem

FLOOR = 0.05  # the share of decisions that stay random, so that the next log supports learning

# A fresh batch of users per round, and test users to compute the true loss, which is unknown in production.
X, digit = load_digits(return_X_y=True)
X, order = X / 16, np.random.default_rng(0).permutation(len(X))
*batches, test = np.array_split(order, [250, 600, 1200])

# Before the first round nothing is known, so the policy is uniform.
first = poem.BanditLog(X[:10], digit[:10], loss=np.zeros(10), propensity=np.ones(10), labels=range(10))
running: poem.Policy | poem.FlooredPolicy = poem.uniform_policy(first)
loggers, logs = {}, []
print(f"before: expected loss {running.expected_loss(X[test], digit[test]):.3f}")
for number, users in enumerate(batches, start=1):
    # Log the decisions of the deployed policy.
    name = f"round {number}"
    log = poem.simulate(X[users], digit[users], running, replay=4, rng=number)
    learn, fresh = log.split(0.4, rng=number, by="unit")
    logs.append(learn.with_loggers(np.full(len(learn), name)))
    loggers[name] = running

    # Learn from all logs so far, with the propensities of the mixture of their policies. Certify the result against
    # the deployed policy, on fresh rows that it logged.
    pooled = poem.balanced(poem.BanditLog.concat(logs), loggers)
    result = poem.fit(pooled, selection=poem.Selection(validation=fresh), logging_policy=running, loss_bounds=(0, 1))
    print(f"\n{name}: logged loss {log.loss.mean():.3f}; {len(pooled):,} rows to learn from")
    print(result.explain())

    # Deploy the new policy with a floor, or keep the old one if nothing was certified.
    if result.certified:
        running = result.policy.with_floor(FLOOR)
    print(f"{name}: expected loss of the deployed policy {running.expected_loss(X[test], digit[test]):.3f}")
