"""The tree shows the flow: few modules at the top, packages entered by their front door, rooms of a size to read."""

import ast
import inspect
import pydoc
import re
from pathlib import Path

import pytest

import poem

ROOT = Path(poem.__file__).parent
TESTS = sorted(Path(__file__).parent.rglob("*.py"))
MODULES = sorted(ROOT.rglob("*.py"))
PACKAGES = {str(init.parent.relative_to(ROOT)).replace("/", ".") for init in ROOT.rglob("__init__.py")} - {"."}


def package_of(path):
    return str(path.parent.relative_to(ROOT)).replace("/", ".")


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("poem."):
            yield node.module.removeprefix("poem.")


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.parent != ROOT], ids=lambda path: str(path.relative_to(ROOT))
)
def test_other_packages_are_entered_by_their_front_door(path):
    here = package_of(path)
    inner = [
        module
        for module in imported_modules(path)
        if module not in PACKAGES and "." in module and module.rpartition(".")[0] != here
    ]
    assert not inner


def test_the_top_level_is_short():
    assert len(list(ROOT.glob("*.py"))) <= 8


def test_no_test_file_is_long():
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in TESTS}
    assert not {name: count for name, count in lines.items() if count > 600}


def test_no_module_has_the_name_of_a_public_function():
    assert not {path.stem for path in MODULES} & set(poem.__all__)
    assert not PACKAGES & set(poem.__all__)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_long(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350


def test_nothing_outside_asks_what_kind_of_output_it_is():
    asks = re.compile(r"y\.ndim|y_dimensions|isinstance\(.*(MultiLabel|MultiClass|Subset|Candidates)")
    outside = [path for path in MODULES if path.parent.name != "structures"]
    assert not [path for path in outside if asks.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("function", [poem.fit, poem.evaluate, poem.read_log], ids=lambda function: function.__name__)
def test_help_fits_on_two_screens(function):
    assert len(pydoc.render_doc(function).splitlines()) <= 80
    assert len(inspect.signature(function).parameters) <= 16
