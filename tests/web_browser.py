"""Pages in a real browser (Chromium), shared by the tests of the report and of the service."""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PHONE = {"viewport": {"width": 390, "height": 844}}
DESK = {"viewport": {"width": 1280, "height": 900}}
# Elements that reach beyond the window; parts of figures, and texts that only screen readers see, are left out.
WIDER = """[...document.querySelectorAll("body *")].filter((e) => {
  const box = e.getBoundingClientRect();
  const hidden = e.closest(".hidden-text, .skip, .stack thead") || e.parentElement.closest("svg");
  return box.width > 1 && !hidden && (box.right > innerWidth + 1 || box.left < -1);
}).map((e) => e.outerHTML.slice(0, 120))"""


def _why_no_browser():
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return None if shutil.which("chromium") else "no Chromium was found"


# Marks: the first for tests that open a page, the second for their modules, so that one worker writes pages once.
browsed = pytest.mark.skipif(_why_no_browser() is not None, reason=str(_why_no_browser()))
ONE_WORKER = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def open_tab(browser):
    """Open an address; what the page complains of and asks for is in `complaints` and `requests`."""
    contexts = []

    def open_(address, *, script=True, **options):
        context = browser.new_context(java_script_enabled=script, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.complaints, tab.requests = [], []
        tab.on("console", lambda message: tab.complaints.append(message.text))
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.on("dialog", lambda dialog: (tab.complaints.append("dialog"), dialog.dismiss()))
        tab.goto(address)
        return tab

    yield open_
    for context in contexts:
        context.close()


def check_accessible(tab):
    """Assert that axe-core finds no serious or critical problem in the page."""
    folder = Path(os.environ.get("CALIBRANT_NODE_MODULES", ROOT / "build" / "npm" / "node_modules"))
    axe = folder / "axe-core" / "axe.min.js"
    if not axe.is_file():
        pytest.skip("axe-core is not installed (npm)")
    # Through the debugger, which the Content-Security-Policy of the page does not restrict.
    tab.evaluate(axe.read_text(encoding="utf-8") + "; undefined")
    violations = tab.evaluate("axe.run().then((r) => r.violations)")
    found = [v for v in violations if v["impact"] in ("serious", "critical")]
    shown = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]], v["help"]) for v in found]
    assert not shown, json.dumps(shown, indent=1)


def check_width(tab, width=390):
    """Assert that no element is wider than the window, with all details open, and that the page does not scroll."""
    tab.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(WIDER) == []
