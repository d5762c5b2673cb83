"""The page in a real browser, where one is installed: at two widths, in light and dark, and on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.browser import Browser, find, started
from tests.report.test_map import damaged
from tests.report.test_report import HOSTILE, assert_numbers_agree, made, write

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed: the page is not opened")


@pytest.fixture(scope="module")
def browser():
    with started(PROGRAM) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory, golden):
    """The page of a damaged store whose names are hostile, and of one that a broker wrote."""
    root = tmp_path_factory.mktemp("pages")
    store = damaged(root / "store")
    write(root / "hostile", 90, HOSTILE)
    places = {"damaged": store, "hostile": root / "hostile", "golden": golden("b533-full").path}
    return {
        name: (root / f"{name}.html", *made(path, root / f"{name}.html")) for name, path in places.items()
    }


TEXTS = """
[...document.querySelectorAll("[data-key]")].map((one) => [one.dataset.key, one.value, one.textContent])
"""


class Seen:
    """What `assert_numbers_agree` asks for, as the browser has it."""

    def __init__(self, browser: Browser) -> None:
        self.values = {key: (value, shown) for key, value, shown in browser.run(TEXTS)}


@pytest.mark.share
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["damaged", "hostile", "golden"])
def test_it_opens_without_a_trouble(browser, pages, name, width, dark):
    path, _, _, document = pages[name]
    browser.open(path, width, dark=dark)
    assert browser.run("document.documentElement.dataset.ready") == "true"
    assert_numbers_agree(Seen(browser), document)
    inside = json.loads(browser.run('document.getElementById("document").textContent'))
    inside.pop("page")
    assert inside == document
    assert browser.run("document.documentElement.scrollWidth") <= width
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark
    assert browser.troubles == []


def test_a_segment_is_enlarged(browser, pages):
    path, _, _, document = pages["damaged"]
    browser.open(path, 1000)
    row = document["map"]["rows"][0]
    browser.run('document.querySelector(".map .cell").click()')
    counts = [*row["cells"]["states"].values(), *row["cells"]["topics"].values()]
    drawn = sum(count > 0 for column in counts for count in column)
    assert browser.run('document.querySelectorAll("#zoom rect").length') == drawn
    assert browser.run('document.querySelectorAll("#zoom .s-gap").length') > 0
    browser.run('document.querySelector("#zoom [value=in]").click()')
    assert 0 < browser.run('document.querySelectorAll("#zoom rect").length') < drawn
    browser.run('document.querySelector("#zoom [value=all]").click()')
    assert browser.run('document.querySelectorAll("#zoom rect").length') == drawn
    browser.run('document.querySelector("#zoom [value=close]").click()')
    assert browser.run('document.getElementById("zoom").hidden') is True
    assert browser.troubles == []


def test_the_policy_stops_what_is_not_in_the_file(browser, pages, tmp_path):
    _, _, content, _ = pages["damaged"]
    changed = Path(tmp_path, "changed.html")
    changed.write_text(content.replace('"use strict";', '"use strict"; window.other = 1;', 1))
    browser.open(changed, 1000)
    assert browser.run("document.documentElement.dataset.ready") is None
    assert any("Content Security Policy" in one for one in browser.troubles)
    browser.troubles.clear()


def test_it_prints(browser, pages):
    path, *_ = pages["damaged"]
    browser.open(path, 1000, dark=True)
    assert browser.paper().startswith(b"%PDF")
    browser.call(
        "Emulation.setEmulatedMedia",
        media="print",
        features=[{"name": "prefers-color-scheme", "value": "dark"}],
    )
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run('getComputedStyle(document.getElementById("zoom")).display') == "none"
    browser.call("Emulation.setEmulatedMedia", media="")
