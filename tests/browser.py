"""A real browser: pages are opened in headless Chromium, used by a script that is put into a copy of them, and what
that script saw is read back."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--disable-dev-shm-usage"),
]
DARK, LIGHT = "--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1"
SEEN = re.compile(r'<pre id="seen">(.*?)</pre>', re.DOTALL)
FIRST = """<script>
window.mistakes = [];
window.addEventListener("error", (event) => window.mistakes.push(String(event.message)));
window.addEventListener("unhandledrejection", (event) => window.mistakes.push(String(event.reason)));
for (const level of ["error", "warn"]) console[level] = (...words) => window.mistakes.push(words.join(" "));
</script>"""
LAST = """<script>
window.addEventListener("load", () => {
  const seen = {};
  try { (%s
)(seen); } catch (error) { window.mistakes.push(String(error.stack)); }
  seen.mistakes = window.mistakes;
  const place = document.createElement("pre");
  place.id = "seen";
  place.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen))));
  document.body.append(place);
});
</script>"""

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


OWN = re.compile(r'<script>\s*"use strict";.*?</script>', re.DOTALL)  # the page's


def use(page: Path, script: str, size=(1100, 900), scheme=LIGHT, scripts: bool = True) -> dict:
    """What a script, `(seen) => {...}`, put into `seen`, and what went wrong, `mistakes`; `scripts`: those of the page
    run."""
    text = page.read_text(encoding="utf-8")
    if not scripts:
        text, count = OWN.subn("", text)
        assert count == 1
    text = text.replace("<head>", "<head>" + FIRST, 1).replace(
        "</body>", LAST % script.rstrip().rstrip(";") + "</body>", 1
    )
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "page.html")
        copy.write_text(text, encoding="utf-8")
        options = [f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}", scheme, "--dump-dom"]
        command = [CHROMIUM, *FLAGS, *options, copy.as_uri()]
        quiet = {name: value for name, value in os.environ.items() if name != "DBUS_SESSION_BUS_ADDRESS"}
        done = subprocess.run(command, capture_output=True, timeout=120, check=True, env=quiet)
    found = SEEN.search(done.stdout.decode("utf-8"))
    assert found, done.stderr.decode("utf-8")[-2000:]
    return json.loads(base64.b64decode(found[1]))
