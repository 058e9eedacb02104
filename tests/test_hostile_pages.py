"""Pages and notebook tables with hostile names, in a real browser: no script runs, and no element is injected."""

import numpy as np
import pytest

import poem
from poem.report import write_report

HIT = "window.hit=1"
SCRIPT = f"<script>{HIT}</script>"
# In order, as groups are when folds are drawn: the same figures belong to plain names in their place.
HOSTILE = sorted(
    (
        SCRIPT,
        f"<img src=x onerror={HIT}>",
        f'"><svg onload={HIT}>',
        f"</title></style></text></svg><script>{HIT}</script>",
        f"javascript:{HIT}",
        f"' onmouseover='{HIT}' style='animation:x",
        "{{ 7*7 }}{% include 'page.html' %}<!--",
        f"&lt;script&gt;{HIT}]]>",
        "\u202egnp.exe\x1b[31m\x00\ud83d",
    )
)
PLAIN = [chr(97 + number).ljust(len(name), "x") for number, name in enumerate(HOSTILE)]


def make_log(names):
    rng = np.random.default_rng(0)
    n, k = 300, len(names)
    X, y = rng.integers(0, 2, (n, k)), rng.integers(0, k, n)
    return poem.BanditLog(
        X,
        [names[code] for code in y],
        loss=(y != X[:, :2] @ [1, 2]) * 1.0,
        propensity=np.full(n, 1 / k),
        group=[names[number % k] + str(number) for number in range(n)],
        logger=[names[number % 2] for number in range(n)],
        labels=names,
        feature_names=names,
    )


def make_policy(log, names):
    weights = np.zeros((log.n_features + 1, log.structure.n_scores))
    weights[0, 1], weights[1, 2] = 2.0, 2.0
    record = poem.Record(
        made_by=names[0],
        learner=names[1],
        candidates=({"learner": names[2], "chosen": True}, {"learner": names[3], "problems": [names[4]]}),
        explanation=tuple(names),
        settings={names[5]: names[6]},
    )
    return poem.Policy(log.structure, weights, True, log.labels, log.feature_names, record)


def make_report(names, path):
    log = make_log(names)
    policy = make_policy(log, names)
    return write_report(policy, log, path, title=" ".join(names), other=policy.with_floor(0.3))


def make_notebook(names, path):
    """Write all that a notebook shows of a log and of what was learnt from it."""
    log = make_log(names)
    policy = make_policy(log, names)
    quick = poem.LBFGS(max_iterations=5)
    found = poem.fit(log, lam=[0.0, 1.0], optimizer=quick, n_jobs=1, selection=poem.Selection(guard=False))
    gate = poem.watch(policy, log, loss_bounds=(0, 1))
    evaluation = poem.evaluate({names[0]: policy, names[1]: found.policy}, log, estimators=["IPS", "SNIPS"])
    shown = (log, poem.inspect(log), found, found.table, evaluation, gate)
    path.write_text("<!doctype html><meta charset=utf-8>" + "".join(one._repr_html_() for one in shown))
    return path


ELEMENTS = """() => [...document.querySelectorAll("*")].map(one => [one.tagName.toLowerCase(),
    ...[...one.attributes].map(attribute => attribute.name)].join(" "))"""


def opened(browser, path):
    """Return the elements of a page with their attributes, its text, and what happened while it was open."""
    happened = []
    page = browser.new_page()
    page.on("dialog", lambda dialog: happened.append(dialog.message))
    page.on("console", lambda message: happened.append(message.text))
    page.on("pageerror", lambda error: happened.append(str(error)))
    page.on("request", lambda request: happened.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_timeout(100)
    for one in page.query_selector_all("details"):
        one.evaluate("one => one.open = true")
    assert page.evaluate("window.hit") is None
    found = page.evaluate(ELEMENTS), page.evaluate("document.documentElement.textContent")
    page.close()
    return *found, [what for what in happened if what not in (path.as_uri(), "data:,")]


@pytest.mark.parametrize("make", [make_report, make_notebook])
def test_hostile_names_are_text_and_nothing_else(browser, make, tmp_path):
    hostile, text, happened = opened(browser, make(HOSTILE, tmp_path / "hostile <img src=x onerror=alert(1)>.html"))
    plain, _, _ = opened(browser, make(PLAIN, tmp_path / "plain.html"))
    assert happened == []
    assert hostile == plain
    assert SCRIPT in text
    assert not {"\u202e", "\x1b", "\ufffd"} & set(text)


def test_a_report_shows_names_as_they_are_and_control_characters_as_escapes(tmp_path):
    page = make_report(HOSTILE, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "{{ 7*7 }}{% include" in page
    assert "\\u202egnp.exe\\x1b[31m\\x00\\ud83d" in page


def test_the_browser_would_run_what_is_not_escaped(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<!doctype html>" + SCRIPT)
    with pytest.raises(AssertionError):
        opened(browser, path)
