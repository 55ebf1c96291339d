"""Pages in the Chromium of this machine, headless and without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.patience import PATIENCE

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")

# What can have the focus by keys, in the order of the page; what is folded away is not there.
_REACHABLE = """() => [...document.querySelectorAll('a[href],button,input,select,summary,[tabindex="0"]')]
    .filter((node) => node.checkVisibility()).map((node, at) => (node.dataset.at = at, at))"""


@dataclass
class Shown:
    """A page that is open, with what it complained of and asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def violations(self) -> list[str]:
        """What axe-core finds wrong."""
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]

    def reached_by_keys(self) -> tuple[set[int], set[int]]:
        """Everything that can be used, and what the Tab key leads to."""
        everything = set(self.page.evaluate(_REACHABLE))
        reached: set[int] = set()
        self.page.evaluate("document.activeElement.blur()")
        for _ in range(len(everything) * 4 + 10):
            if reached == everything:
                break
            self.page.keyboard.press("Tab")
            at = self.page.evaluate("document.activeElement.dataset.at ?? null")
            reached.update([int(at)] if at is not None else [])
        return everything, reached


def launch() -> Iterator[Browser]:
    """A browser for a module of tests."""
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.fail("these tests need Chromium: apt-get install chromium (make servers does it)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(_FLAGS), timeout=1000 * PATIENCE)
        yield browser
        browser.close()


def context_of(browser: Browser, **options: Any) -> BrowserContext:
    """A context whose pages may take their time, as everything on a busy machine does."""
    context = browser.new_context(**options)
    context.set_default_timeout(1000 * PATIENCE)
    return context


@contextmanager
def opened(
    browser: Browser, file: Path, *, width: int = 1280, scheme: Literal["light", "dark"] = "light", **more: Any
) -> Iterator[Shown]:
    """A page that has drawn everything; it must have asked for nothing and complained of nothing."""
    context = context_of(browser, viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
    shown = Shown(context.new_page())
    shown.page.on("console", lambda message: shown.complaints.append(message.text))
    shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    shown.page.on("request", lambda request: shown.requests.append(request.url))
    shown.page.goto(file.as_uri())
    shown.page.wait_for_selector("html[data-ready=all]")
    yield shown
    assert shown.complaints == []
    assert [url for url in shown.requests if not url.startswith("blob:")] == [file.as_uri()]
    context.close()
