"""The report: figures by hand, words for each verdict, nothing from the log unescaped, and the page in a browser."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape

import poem
from poem.errors import InputError, LogError
from poem.report import describe, report_html, write_report
from poem.report.content import deciles, histogram
from poem.report.markup import element
from poem.report.show_changes import split_outputs
from poem.report.svg import Axis
from poem.report.wording import Decimals, cut, percent, points, rough, short, significant

HOSTILE = "<script>alert('x')</script>\"&"


def constant(probabilities, labels, n_features=1, **options):
    """A policy with the same class probabilities in every context."""
    weights = np.zeros((n_features + 1, len(labels)))
    weights[-1] = np.log(probabilities)
    return poem.Policy(poem.MultiClass(len(labels)), weights, True, tuple(labels), **options)


def coin_log(n=2000, gap=0.3, labels=("a", "b"), share=0.5, outcome="loss", seed=0):
    """Two outputs, of which the second has a loss (or reward) that is lower (or higher) by ``gap``."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    good = rng.random(n) < 0.5 + np.where(y == 1, gap, 0.0)
    return poem.BanditLog(
        rng.integers(0, 2, (n, 1)),
        np.asarray(labels)[y],
        **{outcome: good if outcome == "reward" else ~good},
        propensity=np.where(y == 1, share, 1.0 - share),
        group=np.arange(n),
        labels=labels,
    )


# ---- figures --------------------------------------------------------------------------------


def test_shares_support_and_means_by_hand():
    log = poem.BanditLog(
        [[0.0], [1.0]],
        ["a", "a", "b", "b", "b", "b", "c", "a"],
        loss=[1, 3, 0, 0, 2, 2, 5, 2],
        propensity=np.full(8, 0.25),
        context=[0, 0, 0, 1, 1, 1, 1, 1],
        group=range(8),
        labels=["a", "b", "c", "d"],
    )
    weights = np.zeros((2, 4))
    weights[0] = np.log([1, 1, 2, 4])  # in context 1 the shares are 1/8, 1/8, 2/8, 4/8; a quarter each in context 0
    policy = poem.Policy(poem.MultiClass(4), weights, True, log.labels)
    outputs = {one.label: one for one in describe(policy, log).changes.outputs}
    assert [outputs[label].rows for label in "abcd"] == [3, 4, 1, 0]
    assert [outputs[label].logged for label in "abcd"] == [3 / 8, 4 / 8, 1 / 8, 0.0]
    assert [outputs[label].outcome for label in "abc"] == [2.0, 1.0, 5.0]
    assert np.isnan(outputs["d"].outcome)
    expected = [(3 * 0.25 + 5 * share) / 8 for share in (0.125, 0.125, 0.25, 0.5)]
    np.testing.assert_allclose([outputs[label].new for label in "abcd"], expected)
    # Weights are h/p: 1 in context 0; 0.5, 0.5, 1 and 2 in context 1.
    np.testing.assert_allclose(outputs["a"].weighted, (1 + 1 + 0.5) / 8)
    np.testing.assert_allclose(outputs["b"].weighted, (1 + 3 * 0.5) / 8)
    assert all(one.few for one in outputs.values())


def test_label_shares_by_hand():
    log = poem.BanditLog(
        [[1.0], [1.0], [1.0], [1.0]],
        [[1, 0], [1, 1], [0, 0], [1, 0]],
        loss=[1, 2, 3, 6],
        propensity=np.full(4, 0.25),
        labels=["x", "y"],
    )
    policy = poem.Policy(poem.MultiLabel(2), np.array([[np.log(3.0), 0.0]]), False, ("x", "y"))
    x, y = sorted(describe(policy, log).changes.outputs, key=lambda one: one.label)
    assert (x.logged, y.logged, x.rows, y.rows) == (0.75, 0.25, 3, 1)
    assert (x.outcome, y.outcome) == (3.0, 2.0)
    np.testing.assert_allclose((x.new, y.new), (0.75, 0.5))


def test_outputs_beyond_ten_are_summed():
    n = 3000
    y = np.random.default_rng(0).integers(0, 30, n)
    log = poem.BanditLog(np.ones((n, 1)), y, loss=np.arange(n) % 2, propensity=np.full(n, 1 / 30), group=range(n))
    shares = np.linspace(1, 30, 30)
    content = describe(constant(shares / shares.sum(), log.labels), log)
    rises, falls, rest = split_outputs(content.changes.outputs)
    assert (len(rises), len(falls), len(rest)) == (10, 10, 10)
    assert min(one.change for one in rises) >= max(one.change for one in rest)
    assert max(one.change for one in falls) <= min(one.change for one in rest)
    np.testing.assert_allclose(sum(one.new for one in (*rises, *falls, *rest)), 1.0)
    assert "10\u00a0other outputs together" in report_html(constant(shares / shares.sum(), log.labels), log)


def test_segments_say_where_the_change_is():
    rng = np.random.default_rng(0)
    n = 4000
    X = np.column_stack([rng.integers(0, 2, n), rng.normal(size=n)])
    y = rng.integers(0, 2, n)
    log = poem.BanditLog(
        X, y, loss=rng.random(n), propensity=np.full(n, 0.5), group=range(n), feature_names=["phone=yes", "age"]
    )
    weights = np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 0.0]])  # only on phones, class 1 rises
    policy = poem.Policy(poem.MultiClass(2), weights, True, log.labels, log.feature_names)
    changes = describe(policy, log).changes
    (segment,) = changes.segments
    assert segment.name == "phone=yes"
    assert segment.rows == X[:, 0].sum()
    assert [one.label for one in segment.rises] == ["1"]
    assert [one.label for one in segment.falls] == ["0"]
    np.testing.assert_allclose(segment.rises[0].new, 1 / (1 + np.exp(-3)))
    assert {one.label: [name for name, _ in one.up] for one in changes.pulls} == {"1": ["phone=yes"], "0": []}
    pull = next(one for one in changes.pulls if one.label == "1")
    np.testing.assert_allclose(pull.up[0][1], 1.5 * X[:, 0].std())  # 3 less what both classes share


def test_sparse_and_dense_contexts_give_the_same_page(class_log):
    from scipy import sparse

    dense = class_log
    same = poem.BanditLog(
        sparse.csr_array(dense.X * (dense.X > 0.3)),
        dense.y,
        loss=dense.loss,
        log_propensity=dense.log_propensity,
        context=dense.context,
        labels=dense.labels,
    )
    full = poem.BanditLog(
        same.X.toarray(),
        dense.y,
        loss=dense.loss,
        log_propensity=dense.log_propensity,
        context=dense.context,
        labels=dense.labels,
    )
    policy = poem.Policy(
        poem.MultiClass(4), np.random.default_rng(0).normal(size=(dense.n_features, 4)), False, dense.labels
    )
    one, two = describe(policy, same), describe(policy, full)
    assert [shift.label for shift in one.changes.outputs] == [shift.label for shift in two.changes.outputs]
    assert [segment.name for segment in one.changes.segments] == [segment.name for segment in two.changes.segments]
    np.testing.assert_allclose(one.gain.value, two.gain.value, rtol=1e-6)


def test_histogram_and_deciles_by_hand():
    bins = histogram(np.array([0.0, 1.0, 1.1, 8.0]))
    assert sum(one.rows for one in bins) == pytest.approx(1.0)
    assert sum(one.weight for one in bins) == pytest.approx(1.0)
    around_one = next(one for one in bins if one.low <= 1.0 < one.high)
    assert (around_one.rows, around_one.weight) == (0.5, pytest.approx(2.1 / 10.1))
    assert (bins[0].rows, bins[0].weight) == (0.25, 0.0)
    found = deciles(np.repeat([1.0, 2.0], 5), np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 2.0]))
    assert [(one.predicted, one.observed, one.rows) for one in found] == [(1.0, 0.4, 5), (2.0, 2.0, 5)]
    assert found[0].error == pytest.approx(np.std([0, 0, 0, 1, 1], ddof=1) / np.sqrt(5))


def test_estimates_are_those_of_evaluate():
    log, policy = coin_log(500), constant([0.2, 0.8], "ab")
    content = describe(policy, log, level=0.9)
    evaluation = poem.evaluate({"new": policy}, log, level=0.9)
    line = evaluation["new", "DR"]
    assert (content.value.value, content.value.low, content.value.high) == (line.value, line.low, line.high)
    assert (content.gain.value, content.gain.low) == (-line.difference, -line.difference_high)
    assert content.surely == evaluation.bound("new", "DR", 0.9)
    assert [one.estimator for one in content.estimates] == [line.estimator for line in evaluation.lines]
    assert content.weights.clip_curve[-1][1] == pytest.approx(evaluation["new", "IPS"].value)


# ---- the verdict ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probabilities", "gap", "kind", "words"),
    [
        ([0.1, 0.9], 0.3, "better", "The new policy is better than what was logged"),
        ([0.1, 0.9], 0.0, "not shown", "The new policy is not shown to be better"),
        ([0.9, 0.1], 0.3, "worse", "The new policy is worse than what was logged"),
    ],
)
def test_verdict(probabilities, gap, kind, words):
    verdict = describe(constant(probabilities, "ab"), coin_log(gap=gap)).verdict
    assert verdict.kind == kind
    assert verdict.headline == words


def test_what_the_log_hardly_holds_cannot_be_told():
    verdict = describe(constant([0.01, 0.99], "ab"), coin_log(share=0.01)).verdict
    assert verdict.kind == "cannot be told"
    assert "cannot tell" in verdict.headline
    assert any("independent units count" in reason for reason in verdict.warnings)
    assert verdict.next_steps[0] == "Do not decide by these figures."
    page = report_html(constant([0.01, 0.99], "ab"), coin_log(share=0.01))
    assert "gain, unreliable" in page
    assert "(an approximate bound), the new policy" not in page


def test_a_log_of_one_unit_has_no_model_and_no_interval():
    log = coin_log(60).with_groups(np.zeros(60))
    content = describe(constant([0.4, 0.6], "ab"), log)
    assert content.headline == "SNIPS"
    assert content.calibration == ()
    assert content.verdict.kind == "cannot be told"
    assert "There is no model of the loss" in report_html(constant([0.4, 0.6], "ab"), log)


def test_gain_in_absolute_and_in_per_cent():
    log = coin_log(4000, gap=0.4)
    page = plain(report_html(constant([0.0001, 0.9999], "ab"), log))
    content = describe(constant([0.0001, 0.9999], "ab"), log)
    gain, old = content.gain.value, log.loss.mean()
    assert f"lower by {content.decimals.show(gain)} (95% interval of the gain:" in page
    assert f"a gain of {percent(gain / old, signed=True)}".replace("\u00a0", " ") in page
    assert "4,000 logged rows, all independent" in page
    assert "Run an A/B test" in page


def test_rewards_are_spoken_of_as_rewards():
    log = coin_log(gap=0.3, outcome="reward")
    content = describe(constant([0.1, 0.9], "ab"), log)
    assert content.verdict.kind == "better"
    assert content.logged.value == pytest.approx(-log.loss.mean())
    assert content.value.value > content.logged.value > 0.0
    assert content.value.low < content.value.value < content.value.high
    assert all(one.outcome > 0.0 for one in content.changes.outputs)
    assert all(0.0 < one.observed < 1.0 for one in content.calibration)
    page = plain(report_html(constant([0.1, 0.9], "ab"), log))
    assert "average reward" in page
    assert "higher is better" in page
    assert "at least" in page
    assert "loss" not in page.replace("losses", "")


def test_a_policy_on_the_log_that_it_was_trained_on():
    log = coin_log(400)
    seen = constant([0.1, 0.9], "ab", record=poem.Record(log=log.fingerprint()))
    content = describe(seen, log)
    assert content.verdict.headline == "The new policy looks better, but on rows that it learnt from"
    assert "optimistic" in content.verdict.warnings[0]
    assert "rows that it has not seen" in content.verdict.next_steps[0]
    assert 'class="verdict beware"' in report_html(seen, log)
    fresh = describe(seen, coin_log(400, seed=1))
    assert fresh.verdict.warnings == ()
    assert "does not say which log" in describe(constant([0.1, 0.9], "ab"), log).verdict.warnings[0]


def test_estimated_propensities_are_told():
    log = coin_log(400)
    guessed = log.with_propensities(log.log_propensity, "estimated")
    assert any("estimated, not logged" in one for one in describe(constant([0.3, 0.7], "ab"), guessed).verdict.warnings)
    with pytest.raises(LogError, match="no propensities"):
        describe(constant([0.3, 0.7], "ab"), log.with_propensities(log.log_propensity, "missing"))


def test_another_policy_is_compared_on_the_same_rows():
    log, old = coin_log(), constant([0.5, 0.5], "ab")
    content = describe(constant([0.1, 0.9], "ab"), log, other=old)
    assert content.versus_other.low > 0.0
    assert {one.policy for one in content.estimates} == {"new", "other"}
    assert any("It is better than the other policy" in line for line in content.verdict.summary)
    assert [one.other for one in content.changes.outputs] == pytest.approx([0.5, 0.5])
    seen = constant([0.5, 0.5], "ab", record=poem.Record(log=log.fingerprint()))
    assert any("which flatters it" in one for one in describe(old, log, other=seen).verdict.warnings)


@pytest.fixture(scope="module")
def fitted(class_log):
    return poem.fit(class_log, n_jobs=1)


# ---- policies of every kind -----------------------------------------------------------------


def test_policies_of_every_kind(class_log, class_logger, label_log, label_logger):
    for policy, log in (
        (class_logger.at_temperature(2.0), class_log),
        (class_logger.with_floor(0.1), class_log),
        (label_logger.at_temperature(1.5), label_log),
        (label_logger.with_floor(0.05), label_log),
    ):
        page = report_html(policy, log)
        assert_well_formed(page)
        assert page.count("<svg") == page.count("<figure")
    content = describe(label_logger.at_temperature(1.5), label_log)
    assert not content.facts.one_each
    assert content.facts.outputs == 4
    assert describe(class_logger.with_floor(0.1), class_log).facts.floor == 0.1


def test_a_fit_tells_of_its_candidates(fitted, class_log):
    content = describe(fitted.policy, class_log)
    assert content.facts.trained_on_it
    assert len(content.candidates) == len(fitted.table)
    page = report_html(fitted.policy, class_log)
    assert "Candidates tried" in page
    assert "What training said" in page
    assert "what the gain is likely to be at least is an approximate lower bound from held-out rows" in page
    assert "units to certify" in page


@pytest.mark.parametrize("options", [{"lam": "auto"}, {"learners": "poem", "selection": poem.Selection(guard=False)}])
def test_only_a_choice_for_a_certificate_has_prospects(options, class_log):
    found = poem.fit(class_log, n_jobs=1, **options)
    assert {(row["gain_likely"], row["units_to_certify"]) for row in found.table.to_dicts()} == {(None, None)}
    assert "units to certify" not in repr(found)
    page = report_html(found.policy, class_log)
    assert "Candidates tried" in page
    assert "units to certify" not in page


def test_candidates_may_lack_figures():
    record = {"candidates": [{"learner": HOSTILE, "chosen": True, "validation": None}, {}], "explanation": [HOSTILE]}
    page = report_html(constant([0.3, 0.7], "ab", record=poem.Record.from_data(record)), coin_log(200))
    assert_well_formed(page)
    assert "<script" not in page
    assert "units to certify" not in page


CERTIFICATE = {
    "certified": True,
    "confidence": 0.9,
    "gain_at_least": 0.125,
    "rows": 1200,
    "objections": [],
}


@pytest.mark.parametrize(
    ("record", "label", "words"),
    [
        ({"certificate": CERTIFICATE}, "certified", ["gain of at least 0.125", "90% confidence", "1,200 fresh rows"]),
        (
            {"certificate_before_refit": CERTIFICATE},
            "certified before refitting",
            ["Before it was learnt again", "gain of at least 0.125", "The policy itself is not"],
        ),
        (
            {"certificate": CERTIFICATE | {"certified": False, "gain_at_least": -0.5}},
            "not certified",
            ["did not show a gain", "90% confidence", "above −0.5"],
        ),
        (
            {"certificate": CERTIFICATE | {"certified": False, "objections": ["rows <b>repeat</b>"]}},
            "not certified",
            ["rows &lt;b&gt;repeat&lt;/b&gt;."],
        ),
        ({"certificate": None, "explanation": ["Chosen: …"]}, "not certified", ["trained without a certificate"]),
        ({}, "not certified", ["no record of a certificate"]),
        ({"certificate": {"certified": True, "gain_at_least": "much"}}, "not certified", ["unknown confidence"]),
    ],
)
def test_the_certificate_stands_in_the_verdict(record, label, words):
    policy = constant((0.4, 0.6), ("a", "b"), record=poem.Record.from_data(record))
    page = report_html(policy, coin_log(200))
    top = page[: page.index('class="tiles"')]
    assert f">{label}</span>" in top
    for word in words:
        assert word in top.replace("\u00a0", " ")


def test_loggers_are_also_judged_alone():
    log = coin_log(600).with_loggers(np.repeat(["first", "second"], 300))
    content = describe(constant([0.3, 0.7], "ab"), log)
    assert [(name, n) for name, n, _ in content.by_logger] == [("first", 300), ("second", 300)]


# ---- the file -------------------------------------------------------------------------------


def test_nothing_from_the_log_is_taken_as_html():
    labels = (HOSTILE, "b" * 300)
    log = coin_log(300, labels=labels)
    named = poem.BanditLog(
        log.X,
        np.asarray(labels)[log.y],
        loss=log.loss,
        log_propensity=log.log_propensity,
        group=log.group,
        labels=labels,
        feature_names=[HOSTILE],
        logger=np.repeat([HOSTILE, "x"], 150),
    )
    weights = np.array([[1.0, -1.0], [0.0, 0.0]])
    policy = poem.Policy(poem.MultiClass(2), weights, True, labels, (HOSTILE,))
    page = report_html(policy, named, title=HOSTILE)
    assert_well_formed(page)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert f"<title>{escape(HOSTILE)}</title>" in page


def test_the_page_asks_for_nothing():
    page = report_html(constant([0.3, 0.7], "ab"), coin_log(200))
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<script|<iframe|\bsrc=", page)
    assert re.findall(r'href="([^"]*)"', page) == ["data:,"]


def test_the_same_call_gives_the_same_page():
    log, policy = coin_log(300), constant([0.3, 0.7], "ab")
    assert report_html(policy, log, n_jobs=1) == report_html(policy, log, n_jobs=2)


def test_the_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    log, policy = coin_log(200), constant([0.3, 0.7], "ab")
    path = write_report(policy, log, tmp_path / "report.html", title="An öld page")
    before = path.read_bytes()
    assert "An öld page" in before.decode("utf-8")
    monkeypatch.setattr("poem.report.show_changes.view", lambda content: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(policy, log, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    monkeypatch.undo()
    with pytest.raises(InputError, match="no folder"):
        write_report(policy, log, tmp_path / "nowhere" / "report.html")


def test_labels_that_utf8_cannot_say_do_not_stop_the_file(tmp_path):
    write_report(constant([0.3, 0.7], ("\ud800", "b")), coin_log(200, labels=("\ud800", "b")), tmp_path / "r.html")


@pytest.mark.parametrize("wrong", [{"policy": None}, {"log": [1, 2]}, {"other": "old.poem"}])
def test_wrong_arguments(wrong):
    given = {"policy": constant([0.3, 0.7], "ab"), "log": coin_log(100)} | wrong
    with pytest.raises(InputError, match=r"[pP]olicy"):
        report_html(given.pop("policy"), given.pop("log"), **given)


# ---- small parts ----------------------------------------------------------------------------


def test_numbers_in_words():
    assert significant(1234.5) == "1,234"
    assert significant(0.012345) == "0.0123"
    assert significant(-1e-9) == "−1.00e−9"
    assert percent(0.1234, signed=True) == "+12.3%"
    assert percent(0.001234) == "0.12%"
    assert points(-0.0525) == "−5.2"
    assert rough(12345) == "12,000"
    assert (short(0.5), short(1000.0), short(-0.002)) == ("0.5", "1,000", "−0.002")
    assert cut("abcdef", 4) == "abc…"
    assert cut("日本語の名前", 6) == "日本…"


def test_values_of_a_page_have_the_same_decimals():
    assert Decimals.of(1.891, 0.018).show(1.891) == "1.891"
    assert Decimals.of(0.00523, 0.002).interval(-0.00066, 0.00781) == "−0.00066 to 0.00781"
    assert Decimals.of(52300.0, 900.0).show(52300.4) == "52,300"
    assert Decimals.of(0.0, np.inf).show(np.inf) == "∞"
    assert Decimals(1).interval(-np.inf, np.inf) == "unbounded"
    assert Decimals(2).show(-0.001, signed=True) == "0.00"


def test_ticks_are_round_and_within_the_axis():
    assert Axis(0.0, 0.55, 0, 1).ticks(6) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert Axis(1.0, 1000.0, 0, 1, log=True).ticks() == [1.0, 10.0, 100.0, 1000.0]
    assert Axis(3.0, 3.0, 0, 1).at(3.0) == 0.5


def test_elements_escape_what_is_not_html():
    assert element("p", "<b>", element("i"), class_='"') == '<p class="&#34;">&lt;b&gt;<i></i></p>'


# ---- in a browser ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory, fitted, class_log, label_log, label_logger):
    """Pages that differ in what they hold: wide tables, hostile names, infinite intervals, two policies."""
    folder = tmp_path_factory.mktemp("pages")
    long = ("averyveryverylongnamewithoutanyspace" * 4, HOSTILE)
    rare = coin_log(share=0.01, labels=long)
    return [
        write_report(fitted.policy, class_log, folder / "fit.html"),
        write_report(label_logger.at_temperature(1.5), label_log, folder / "two.html", other=label_logger),
        write_report(constant([0.01, 0.99], long), rare, folder / "rare.html", title=" ".join(long)),
        write_report(constant([0.4, 0.6], "ab"), coin_log(60).with_groups(np.zeros(60)), folder / "one.html"),
    ]


@pytest.mark.parametrize("number", range(4))
def test_in_a_browser(browser, pages, number):
    path, asked, said = pages[number], [], []
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    backgrounds = set()
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert_all_visible(page)
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert page.evaluate(OUTSIDE) == []
    assert len(backgrounds) == 2
    assert_prints(page)
    assert (said, [url for url in asked if url != "data:,"]) == ([], [path.as_uri()])
    page.close()


OUTSIDE = """() => [...document.querySelectorAll("svg text")].filter(text => {
    const picture = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
    return box.left < picture.left - 8 || box.right > picture.right + 8 || box.bottom > picture.bottom + 1;
}).map(text => text.textContent)"""


def assert_prints(page):
    """Dark on the screen is still black on white on paper, with nothing left out."""
    page.set_viewport_size({"width": 700, "height": 990})
    page.emulate_media(media="print", color_scheme="dark")
    assert_all_visible(page)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4")[:5] == b"%PDF-"


def assert_all_visible(page):
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("svg, figure, figcaption, table")].map(one => {
            const box = one.getBoundingClientRect(), style = getComputedStyle(one);
            return [one.tagName, box.width * box.height, style.visibility, style.opacity];
        })"""
    )
    assert len([one for one in boxes if one[0] == "svg"]) >= 5
    assert [one for one in boxes if one[1] <= 0.0 or one[2:] != ["visible", "1"]] == []


class _Tags(HTMLParser):
    VOID = ("meta", "link")

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.headings, self.pictures = [], [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "svg":
            self.pictures.append(dict(attributes))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def assert_well_formed(page):
    tags = _Tags()
    tags.feed(page)
    assert (tags.open, tags.wrong) == ([], [])
    assert tags.headings[0] == 1
    steps = zip(tags.headings, tags.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)
    assert all(one["role"] == "img" and one["aria-label"] for one in tags.pictures)
    assert '<html lang="en">' in page


def plain(page):
    """Return what a page says, without its tags and its style."""
    said = re.sub(r"<[^>]*>", " ", page.split("</style>")[1])
    return re.sub(r"\s+", " ", said.replace("\u00a0", " "))
