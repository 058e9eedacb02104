"""Errors that must say what they should."""

import re

import pytest


def refuses(error, *parts):
    """Expect an error whose message holds all parts, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(part) for part in parts))
