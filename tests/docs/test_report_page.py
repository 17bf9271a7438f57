# SPDX-License-Identifier: Apache-2.0
"""The page of `berthctl replay --report`, as a browser shows it: whole, legible and without a network."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filehost import PATIENCE_S, FileHost
from world import BACKUP, CONTAINER, NGINX, rules

BERTHCTL, BERTHD = (Path(os.environ[name]).resolve() for name in ("BERTHCTL", "BERTHD"))
WIDTHS = (1280, 600)
# The least contrast that the Web Content Accessibility Guidelines 2 ask of text.
LEAST_CONTRAST = 4.5

# Texts of plots that lie outside their plot, and plots without an area.
MISPLACED = """
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  const all = svg.getBoundingClientRect();
  if (!(all.width > 0 && all.height > 0)) found.push("a plot without an area");
  for (const text of svg.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    if (box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1)
      found.push(text.textContent);
  }
}
return found;
"""
# By how much the page is wider than the window.
TOO_WIDE = "return document.scrollingElement.scrollWidth - window.innerWidth"
# The least contrast of any text with the page, by the formula of the same guidelines, and that text.
CONTRAST = """
const luminance = colour => {
  const [r, g, b] = colour.match(/[0-9.]+/g).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const page = luminance(getComputedStyle(document.body).backgroundColor);
let least = [Infinity, ""];
for (const element of document.body.querySelectorAll("*:not(title)")) {
  if (![...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
  const style = getComputedStyle(element);
  const text = luminance(element.closest("svg") ? style.fill : style.color);
  const contrast = (Math.max(page, text) + 0.05) / (Math.min(page, text) + 0.05);
  if (contrast < least[0]) least = [contrast, element.textContent];
}
return least;
"""

webdriver = pytest.importorskip("selenium.webdriver", reason="there is no selenium here (Debian: python3-selenium)")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("chromedriver"), reason="there is no chromedriver here (Debian: chromium-driver)")


# What trial and blame print on a host with a kernel of its own; names of services and cgroups may be long.
LONG = "system.slice/" + "/".join(["a-long-name-of-a-service-without-any-break"] * 4)
MEASURED = {
    "trial.json": {
        "schema": "berth.trial/1", "a": "observe.toml", "b": "enforce.toml", "windows": 14, "order": ["a", "b"] * 7, "window_s": 20,
        "differs": [{"key": "mode", "a": '"observe"', "b": '"enforce"'}],
        "figures": [
            {"service": service, "figure": "runq-p99", "unit": "us", "pairs": 7, "a": 812.5, "b": 97.25, "relative": True, "change": -0.88,
             "low": -0.91, "high": -0.83, "difference": True, "better": "b"} for service in (None, LONG)
        ],
    },
    "blame.json": {
        "schema": "berth.blame/1", "service": NGINX, "workloads": [LONG], "time": 1.79e9, "seconds": 10, "waited_ms": 400,
        "culprits": [{"kind": "cgroup", "name": LONG, "ms": 300}, {"kind": "quota", "name": None, "ms": 100}],
    },
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report about a few seconds of a host of files, with two configurations compared."""
    root = tmp_path_factory.mktemp("h")
    host = FileHost(root, BERTHCTL, BERTHD, f'mode = "enforce"\n{rules()}')
    for workload in (f"system.slice/{NGINX}", f"system.slice/{BACKUP}", CONTAINER):
        host.files.add_group(workload)
    for name, document in MEASURED.items():
        (root / name).write_text(json.dumps(document))
    host.start()
    try:
        host.wait_for(f"berthctl log -n 20 | grep -q '{NGINX} now runs on'", "the first pins")
        made = host.run(
            "berthctl record --for 3s -o day.zst && { echo 'interference.weighting = \"overlap\"'; cat host/berth.toml; } >other.toml"
            " && berthctl replay day.zst --config host/berth.toml --compare other.toml --report page.html"
            + "".join(f" --measured {name}" for name in MEASURED)
        )
        assert made.returncode == 0, made
    finally:
        host.stop()
    return root / "page.html"


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--proxy-server=127.0.0.1:1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Its files go with the page's.
    service = Service(shutil.which("chromedriver"), env={**os.environ, "TMPDIR": str(page.parent)})
    driver = webdriver.Chrome(service=service, options=options)
    try:
        driver.get(page.as_uri())
        yield driver
    finally:
        driver.quit()


def test_opens_without_a_network_and_without_a_complaint(browser: webdriver.Chrome) -> None:
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)") == []
    assert browser.title.startswith("Replay of ")


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_lies_where_it_is_seen(browser: webdriver.Chrome, width: int) -> None:
    browser.set_window_size(width, 900)
    WebDriverWait(browser, PATIENCE_S).until(lambda _: browser.execute_script("return window.innerWidth") == width)
    assert browser.execute_script("return document.querySelectorAll('svg').length") >= 5
    assert browser.execute_script(MISPLACED) == []
    assert browser.execute_script(TOO_WIDE) <= 0


def test_what_was_measured_has_its_tables(browser: webdriver.Chrome) -> None:
    texts = browser.execute_script("return [...document.querySelectorAll('table')].map(table => table.innerText)")
    assert any("a difference: b is better" in text and "-91.0 % to -83.0 %" in text for text in texts), texts
    assert any(LONG in text and "75 %" in text for text in texts), texts
    widths = browser.execute_script("return [...document.querySelectorAll('.s i')].map(bar => bar.getBoundingClientRect().width)")
    assert len(widths) == 2 and widths[0] == pytest.approx(3 * widths[1], rel=0.05) and widths[1] > 0


@pytest.mark.parametrize("scheme", ("light", "dark"))
def test_text_is_legible_in_both_colour_schemes(browser: webdriver.Chrome, scheme: str) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    assert browser.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    contrast, text = browser.execute_script(CONTRAST)
    assert contrast >= LEAST_CONTRAST, text
