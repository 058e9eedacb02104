"""Train three policies on one log, evaluate them on held-out rows, and save one to a file."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import poem

# Contexts, and the deployed policy: here a weak classifier that samples its decisions.
X, digit = load_digits(return_X_y=True)
X = X / 16
running = poem.supervised(X[:90], digit[:90], C=0.1)

# Its log. Yours comes from production: BanditLog(X, y, loss=…, propensity=…).
log = poem.simulate(X, digit, running, replay=8, rng=0)
train, test = log.split(0.25, rng=1)
print(train, "\n")

# IPS and POEM as in the paper, and the default: several learners compete.
for name, options in {
    "IPS": {"lam": 0.0},
    "POEM": {"lam": "auto"},
    "poem.fit": {"loss_bounds": (0, 1)},
}.items():
    result = poem.fit(train, **options)
    found = poem.estimate(result.policy, test)
    print(f"{name:<10} estimated loss {found} from {found.effective_n:.0f} effective rows")
print(f"{'running':<10} logged loss    {np.mean(test.loss):.4g}\n")

# Save the last one, load it, and decide with it.
with tempfile.TemporaryDirectory() as folder:
    path = result.policy.save(Path(folder) / "digits.poem")
    policy = poem.load_policy(path)
chosen = policy.sample(X[:5], rng=2)
print("chosen", chosen, "with propensities", np.exp(policy.log_prob(X[:5], chosen)).round(3))
