import inspect
import json
import math
import subprocess
import sys

import numpy as np
import pytest

import poem
from poem.errors import InputError


def in_a_new_process(code):
    """Run code in a fresh interpreter and return what it prints as JSON."""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


# ---- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", poem.__all__)
def test_each_public_name_is_there_and_documented(name):
    thing = getattr(poem, name)
    doc = inspect.getdoc(thing)
    assert doc
    assert not doc.startswith(f"{name}(")  # what a dataclass writes by itself
    assert len(doc.split()) >= 4


@pytest.mark.parametrize("name", poem.__all__)
def test_public_methods_are_documented(name):
    thing = getattr(poem, name)
    if not inspect.isclass(thing):
        return
    for method_name, method in inspect.getmembers(thing):
        owner = next((base for base in thing.__mro__ if method_name in vars(base)), object)
        if not method_name.startswith("_") and callable(method) and owner.__module__.startswith("poem"):
            assert inspect.getdoc(method), f"{name}.{method_name}"


def test_public_names_are_sorted_and_distinct():
    assert len(set(poem.__all__)) == len(poem.__all__)
    namespace = {}
    exec("from poem import *", namespace)
    assert set(poem.__all__) <= set(namespace)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'poem' has no attribute 'sonnet'"):
        _ = poem.sonnet


def test_the_version_is_a_version():
    assert [part.isdigit() for part in poem.__version__.split(".")[:2]] == [True, True]


def test_each_error_is_a_poem_error():
    classes = [thing for _, thing in inspect.getmembers(poem.errors, inspect.isclass)]
    for kind in classes:
        assert issubclass(kind, poem.PoemError | poem.errors.PoemWarning)
        assert kind.__name__ in poem.errors.__doc__


def test_importing_poem_imports_no_heavy_library():
    heavy = ("sklearn", "matplotlib", "pyarrow", "pandas", "polars")
    loaded = in_a_new_process(f"import poem, sys, json; print(json.dumps([m for m in {heavy} if m in sys.modules]))")
    assert loaded == []


def test_fitting_imports_no_heavy_library():
    code = """
import json, sys
import numpy as np, poem
rng = np.random.default_rng(0)
log = poem.BanditLog(rng.normal(size=(40, 2)), rng.integers(0, 2, 40), loss=rng.random(40), propensity=[0.5] * 40)
poem.fit(log, lam=0.1, selection=poem.Selection(guard=False))
print(json.dumps([m for m in ("sklearn", "matplotlib", "pyarrow", "pandas") if m in sys.modules]))
"""
    assert in_a_new_process(code) == []


# ---- kernels --------------------------------------------------------------------------------------

USE_ALL_KERNELS = """
import copy, json, pathlib, pickle, sys, tempfile
import numpy as np, scipy.sparse as sp, poem

rng = np.random.default_rng(0)
X = np.where(rng.random((60, 5)) < 0.3, rng.normal(size=(60, 5)), 0.0)
spaces = {{"multiclass": rng.integers(0, 3, 60), "multilabel": rng.integers(0, 2, (60, 3))}}
spaces["subset"] = np.argsort(rng.random((60, 4)), axis=1) // 2
for structure, y in spaces.items():
    for form in (np.asarray, np.asfortranarray, np.ndarray.tolist, sp.csr_array, sp.csc_matrix):
        known = {{"propensity": np.full(60, 0.3), "structure": structure}}
        log = poem.BanditLog(form(X), y, loss=rng.random(60), **known)
        for optimizer in (poem.LBFGS(max_iterations=3), poem.AdaGrad(max_batches=3)):
            for l2 in (0.0, 0.1):
                found = poem.fit(log, lam=0.1, l2=l2, optimizer=optimizer, selection=poem.Selection(guard=False))
        {more}
        poem.estimate(found.policy, log)
        found.policy.log_prob(form(X), y)
        found.policy.predict(form(X))
    poem.fit(log, learners=["direct", "dr"], selection=poem.Selection(imitate=True))
    found.policy.sample(X, rng=0)
    poem.evaluate(found.policy, log, interval="bootstrap", resampling=poem.Resampling(replicates=100))
    poem.watch(found.policy, log, loss_bounds=(0, 1))

for actions, identity in ((None, 0), (np.eye(3), 0), (sp.eye_array(3, 40, format="csr"), 0), (np.eye(3), 1)):
    for form in (np.asarray, sp.csr_array):
        given = {{}} if actions is None else {{"actions": poem.Catalogue(range(3), actions), "identity": identity}}
        lists, rows = [[0, 1, 2], [2, 1]] * 30, {{"loss": rng.random(60), "propensity": np.full(60, 0.4)}}
        log = poem.BanditLog(form(X), [1, 2] * 30, available=lists, labels=range(3), **given, **rows)
        for optimizer in (poem.LBFGS(max_iterations=3), poem.AdaGrad(max_batches=3)):
            found = poem.fit(log, lam=0.1, optimizer=optimizer, selection=poem.Selection(guard=False))
        poem.fit(log, learners=["direct", "dr"], selection=poem.Selection(imitate=True))
        poem.evaluate(found.policy.with_floor(0.1), log)
        found.policy.sample(form(X), 0, lists, given.get("actions"))
        found.policy.predict(form(X), lists, given.get("actions"))

ADF = "shared |u x\\n0:0.5:0.5 |a y:2\\n|a z\\n\\n"
CCB = "ccb shared |u x\\nccb action |a y\\nccb action |a z\\nccb slot 0:0.5:0.5,1:0.5 |s t\\n\\n"
DSJSON = dict(_label_cost=-1, _label_probability=0.5, _label_Action=1, _labelIndex=0)
multi = [[dict(a=dict(f=1.5)), dict(a=dict(g="text"))], [dict(a=dict(f=2)), dict(a=dict(h=True))]]
lines = [json.dumps(DSJSON | dict(c=dict(u=dict(x=1), _multi=one))) + "\\n" for one in multi]
with tempfile.TemporaryDirectory() as folder:
    for name, text in (("adf.vw", ADF * 3), ("ccb.vw", CCB * 3), ("log.dsjson", "".join(lines))):
        pathlib.Path(folder, name).write_text(text)
        poem.read_log(pathlib.Path(folder, name))
    pathlib.Path(folder, "some.vw").write_text("1 2:0.5:0.5 |a x\\n1:1:0.5 |b z\\n")
    poem.read_log(pathlib.Path(folder, "some.vw"))
    pathlib.Path(folder, "log.vw").write_text("1:0.5:0.5 |a x:2 y\\n2:1:0.5 |b z\\n")
    pathlib.Path(folder, "log.jsonl").write_text(json.dumps(dict(x=1.0, output=2, loss=0.5, propensity=0.5)) + "\\n")
    for name in ("log.vw", "log.jsonl"):
        poem.read_log(pathlib.Path(folder, name))

    for number, form in enumerate((np.asarray, sp.csr_array)):
        rows = {{"loss": rng.random(60), "propensity": np.full(60, 0.4)}}
        log = poem.BanditLog(form(X[:20]), [1, 2, 0] * 20, context=[*range(20)] * 3, **rows)
        for more in (log, log.with_groups([str(i % 9) for i in range(60)])):
            packed = poem.pack_log(more, pathlib.Path(folder, f"packed-{{number}}-{{more.group is None}}"))
            small = packed.replaced(memory=4 * packed.nbytes)
            for optimizer in (poem.LBFGS(max_iterations=3), poem.AdaGrad(max_batches=3)):
                found = poem.fit(small, lam=0.1, optimizer=optimizer, selection=poem.Selection(guard=False))
            poem.evaluate(found.policy, small, ["IPS"], interval="bootstrap")

counts = dict()
for module in list(sys.modules.values()):
    for kernel in vars(module).values() if module.__name__.startswith("poem.") else ():
        if hasattr(kernel, "stats") and kernel.__module__ == module.__name__:
            hits, misses = (sum(counter.values()) for counter in (kernel.stats.cache_hits, kernel.stats.cache_misses))
            counts[module.__name__ + "." + kernel.py_func.__name__] = [hits, misses]
print(json.dumps(counts))
"""

STRUCTURES = {"available", "multiclass", "multilabel", "offered", "sets", "subset"}
COPIES = "[poem.estimate(found.policy, again) for again in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log))]"


def test_a_second_process_never_compiles_not_even_for_copies_of_a_log():
    first, second = (in_a_new_process(USE_ALL_KERNELS.format(more=more)) for more in ("", COPIES))
    assert {name: misses for name, (_, misses) in second.items() if misses} == {}
    loaded = {name for name, (hits, _) in second.items() if hits}
    # What the first process compiled for the sake of another kernel, the second has as a part of that one.
    assert loaded <= {name for name, counts in first.items() if sum(counts)}
    assert {name.split(".")[2] for name in loaded if name.startswith("poem.structures.")} == STRUCTURES
    assert {name.split(".")[1] for name in loaded} == {
        "certificates",
        "compute",
        "estimators",
        "optimizers",
        "packed",
        "readers",
        "structures",
    }


# ---- the bound ------------------------------------------------------------------------------------


def test_the_bound_is_that_of_theorem_1():
    # −0.5 + √(18·0.2·log(10/0.1)/100) + 15·3·log(10/0.1)/99
    expected = -0.5 + math.sqrt(18 * 0.2 * math.log(100) / 100) + 15 * 3 * math.log(100) / 99
    assert poem.generalization_bound(-0.5, 0.2, 100, 3.0, gamma=0.1) == pytest.approx(expected, rel=1e-14)
    assert expected == pytest.approx(2.0004, abs=1e-4)


def test_the_bound_grows_with_the_capacity():
    q = math.log(10 / 0.05) + 7.0
    expected = -0.5 + math.sqrt(18 * 0.2 * q / 100) + 15 * 3 * q / 99
    assert poem.generalization_bound(-0.5, 0.2, 100, 3.0, log_capacity=7.0) == pytest.approx(expected, rel=1e-14)


def bounds(**series):
    fixed = {"value": -0.5, "variance": 0.2, "n": 100, "clip": 3.0, "gamma": 0.05}
    ((name, values),) = series.items()
    return [poem.generalization_bound(**fixed | {name: value}) for value in values]


@pytest.mark.parametrize(
    ("name", "values", "sign"),
    [
        ("n", [16, 17, 100, 10_000, 10**9], -1),
        ("variance", [0.0, 0.01, 0.2, 5.0], 1),
        ("clip", [0.5, 1.0, 10.0, 1e6], 1),
        ("value", [-3.0, -0.5, -0.1, 0.0], 1),
        ("gamma", [0.001, 0.05, 0.5, 0.999], -1),
        ("log_capacity", [0.0, 1.0, 100.0], 1),
    ],
)
def test_the_bound_moves_the_right_way(name, values, sign):
    assert np.all(sign * np.diff(bounds(**{name: values})) > 0)


def test_the_bound_comes_near_to_the_estimate_with_many_rows():
    assert bounds(n=[10**12])[0] == pytest.approx(-0.5, abs=1e-4)


@pytest.mark.parametrize("n", [15, 1, 0, -100])
def test_the_bound_needs_16_rows(n):
    with pytest.raises(InputError, match=f"holds for n ≥ 16; found n = {n}. Use more rows"):
        poem.generalization_bound(-0.5, 0.2, n, 3.0)
    assert math.isfinite(poem.generalization_bound(-0.5, 0.2, 16, 3.0))


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": 0.0}, "gamma must be between 0 and 1; found 0.0. Use 0.05"),
        ({"gamma": 1.0}, "gamma must be between 0 and 1; found 1.0"),
        ({"gamma": NAN}, "gamma must be between 0 and 1; found nan"),
        ({"clip": 0.0}, "clip must be finite and above 0; found 0.0"),
        ({"clip": -1.0}, "clip must be finite and above 0; found -1.0"),
        ({"clip": INF}, "clip must be finite and above 0; found inf"),
        ({"clip": NAN}, "clip must be finite and above 0; found nan"),
        ({"value": 0.1}, "value must be in .* found 0.1. Scale the loss"),
        ({"value": -3.1}, "value must be in .* found -3.1. Scale the loss"),
        ({"value": NAN}, "value must be in .* found nan"),
        ({"variance": -0.1}, "variance and log_capacity must not be negative; found -0.1"),
        ({"log_capacity": -1.0}, "variance and log_capacity must not be negative; found 0.2 and -1.0"),
        ({"variance": NAN}, "variance"),
        ({"log_capacity": NAN}, "log_capacity"),
        ({"n": NAN}, "n"),
    ],
    ids=repr,
)
def test_the_bound_refuses_bad_arguments(changes, message):
    fixed = {"value": -0.5, "variance": 0.2, "n": 100, "clip": 3.0}
    with pytest.raises(InputError, match=message):
        poem.generalization_bound(**fixed | changes)
