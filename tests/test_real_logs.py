"""Estimates from one logger's log against what the other logger really saw: the Open Bandit data."""

import pytest
from test_datasets import SHARED

from benchmarks.open_bandit import cases, covered

ARCHIVE = SHARED / "obd_small_obp-0.4.1.tar.xz"

pytestmark = pytest.mark.skipif(not ARCHIVE.is_file(), reason="the Open Bandit data are not on this machine")


@pytest.fixture(scope="module")
def found():
    return cases(ARCHIVE)


def test_the_other_logs_mean_is_in_five_of_six_intervals(found):
    assert len(found) == 6
    for line in found[0].evaluation.lines:
        if line.estimator != "DM":  # whose interval knows nothing of its model's error
            assert sum(covered(case, line.estimator) for case in found) >= 5, line.estimator


def test_what_cannot_be_judged_is_said(found):
    verdicts = {(case.campaign, case.policy): case.evaluation.diagnostics[case.policy].verdict for case in found}
    assert verdicts["women", "random"] == "don't"  # one row carries two thirds of all weight
    assert verdicts["men", "bts"] == verdicts["women", "bts"] == "caution"  # they rest on a few clicks


def test_finite_sample_bounds_hold_as_well():
    for interval in ("bernstein", "truncated"):
        name = "clipped IPS" if interval == "bernstein" else "IPS"
        found = cases(ARCHIVE, estimators=[name], interval=interval)
        assert all(covered(case, name) for case in found)
