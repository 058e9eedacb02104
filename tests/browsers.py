"""A real browser."""

import os
import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=chromium, args=[*options, "--disable-sync"])
        except sync_api.Error as error:
            if chromium is not None or "POEM_BROWSER" in os.environ:  # CI has one, or else has failed
                raise
            pytest.skip(f"there is no chromium: {error}")
        yield opened
        opened.close()
