"""Messages of the library in the words of the command line: what is an argument in Python is an option here."""

import argparse
import re
from typing import Any

RENAMED = {"validation": "--valid", "learners": "--learner", "n_jobs": "--jobs", "logging_policy": "--start"}
BOTH = re.compile(r"\w+=,\s+(--[\w-]+)|(--[\w-]+),\s+\w+=")  # a message that gives both names
PHRASES = {
    "certify=False": "--no-certificate",
    "poem.inspect(log)": "poem inspect",
    "poem.estimate_propensities(log)": "--propensity estimate",
    " (propensity='missing', then poem.estimate_propensities)": "",
    " (poem.estimate_propensities)": "",
    "(poem.certify)": "(poem.certify in Python)",
}
# What JSON says in words for people; all else in it is data, in which names of the log may look like arguments.
WORDS = ("advice", "answer", "conditions", "objections", "reasons", "text", "warnings")


def as_typed(message: object, parser: argparse.ArgumentParser) -> str:
    """Return a message in which arguments have the names of a command's options; what is no option stays as it is.

    ``loss_bounds=`` becomes ``--loss-bounds``, ``force=True`` becomes ``--force``, and where a message gives both
    names, as in ``(--time, time=)``, one is left. A value from the log, such as ``time=noon``, is not touched.
    """
    text = BOTH.sub(lambda found: found[1] or found[2], str(message))
    options = {action.dest: action.option_strings[-1] for action in parser._actions if action.option_strings}
    for phrase, typed in PHRASES.items():
        text = text.replace(phrase, typed)
    for name, option in [*options.items(), *((name, at) for name, at in RENAMED.items() if at in options.values())]:
        text = re.sub(rf"(?<![\w.-]){name}=(True\b|(?![\w'\"(\[-]))", option, text)
    return re.sub(r"(--[a-z-]+) \(\1\)", r"\1", text)  # a message that gave both names


def data_as_typed(content: Any, parser: argparse.ArgumentParser, in_words: bool = False) -> Any:
    """Return the content of a JSON answer whose messages have the names of a command's options."""
    if isinstance(content, dict):
        return {key: data_as_typed(value, parser, in_words or key in WORDS) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [data_as_typed(value, parser, in_words) for value in content]
    return as_typed(content, parser) if in_words and isinstance(content, str) else content
