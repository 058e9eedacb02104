"""The two ways to run the paper's experiments: as its text says, and as its authors' release did."""

from dataclasses import dataclass
from typing import Literal

from poem.errors import InputError
from poem.estimators import IPS, Objective
from poem.experiments.release import ReleaseIPS
from poem.optimizers import LBFGS, AdaGrad
from poem.structures import Unseen


@dataclass(frozen=True)
class Protocol:
    """What the paper's text leaves open, or its release does otherwise.

    Attributes
    ----------
    name, about : str
    logger_C, figure1_C : float
        The logistic regression of the logging policy, for all but Figure 1 and for Figure 1.
    replay, figure3_replay : int
        Passes over the training set, where they are not what is varied.
    unseen : "rate" or "never"
        What the logging policy does with a label that it has never seen on.
    unseen_is_coin_flip : bool
        Whether such a label counts one half in the logging policy's own expected test loss.
    select_by : "ips" or "snips"
        How held-out rows choose λ.
    loss_is_scaled : bool
        Whether tolerances and AdaGrad's first steps are meant for a loss in [−1, 0], or in [−q, 0].
    skyline : "expected_loss" or "map_loss"
        What Figure 1 shows of the CRF.
    stochastic_estimator : Objective
        What AdaGrad's batches follow.
    """

    name: str
    about: str
    logger_C: float
    figure1_C: float
    replay: int
    figure3_replay: int
    unseen: Unseen
    unseen_is_coin_flip: bool
    select_by: Literal["ips", "snips"]
    loss_is_scaled: bool
    skyline: Literal["expected_loss", "map_loss"]
    stochastic_estimator: Objective

    def lbfgs(self, q: int) -> LBFGS:
        """Return the batch optimizer for q labels."""
        scale = self._scale(q)
        return LBFGS(corrections=50, gtol=1e-6 / scale, floor=1.0 / scale)

    def adagrad(self, q: int) -> AdaGrad:
        """Return the stochastic optimizer for q labels.

        With the loss, and so the gradient, q times as large, an accumulator that starts at 1 is one
        that starts at 1/q² here.
        """
        scale = self._scale(q)
        return AdaGrad(initial=1.0 / scale**2, tol=1e-6 / scale)

    def _scale(self, q: int) -> int:
        return 1 if self.loss_is_scaled else q


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            name="paper",
            about=(
                "as the paper's text says: logging policy with the default C = 1, four passes, λ chosen by plain IPS "
                "on held-out rows, the majoriser of Proposition 1, loss scaled to [−1, 0]"
            ),
            logger_C=1.0,
            figure1_C=1.0,
            replay=4,
            figure3_replay=4,
            unseen="rate",
            unseen_is_coin_flip=False,
            select_by="ips",
            loss_is_scaled=True,
            skyline="expected_loss",
            stochastic_estimator=IPS(),
        ),
        Protocol(
            name="release",
            about=(
                "as the authors' code did: logging policy with C = 0.1 (10 in Figure 1), eight passes in Figure 3, λ "
                "chosen by SNIPS on held-out rows, a stochastic update without the squared term's factor n, "
                "tolerances for a loss in [−q, 0], MAP predictions of the CRF"
            ),
            logger_C=0.1,
            figure1_C=10.0,
            replay=4,
            figure3_replay=8,
            unseen="never",
            unseen_is_coin_flip=True,
            select_by="snips",
            loss_is_scaled=False,
            skyline="map_loss",
            stochastic_estimator=ReleaseIPS(),
        ),
    )
}


def protocol_named(name: str) -> Protocol:
    """Return one of the protocols."""
    if name not in PROTOCOLS:
        raise InputError(f"protocol must be one of {', '.join(PROTOCOLS)}; found {name!r}.")
    return PROTOCOLS[name]
