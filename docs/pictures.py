"""Makes the pictures of README.md from a run of the demo: the page and the command line. Needs chromium.

python docs/pictures.py
"""

from __future__ import annotations

import html
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
GPUWATCH = [sys.executable, "-m", "gpuwatch"]
# A terminal as wide as the text in it: what a person sees after `gpuwatch demo --once`.
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #11151c; }}
pre {{ margin: 0; padding: 18px 22px; color: #d7dde8; font: 13px/1.38 "DejaVu Sans Mono", monospace; }}
.p {{ color: #7aa2f7; }} .critical {{ color: #ff7b72; }} .warning {{ color: #e3b341; }}
</style><pre><span class="p">$ {command}</span>
{text}</pre>"""
_LONGEST_LINE = 168


def main() -> int:
    """Writes both pictures; returns the exit status."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        once = subprocess.run([*GPUWATCH, "demo", "--once"], capture_output=True, text=True, check=True).stdout
        page = Path(folder) / "terminal.html"
        lines = [line[:_LONGEST_LINE] for line in once.splitlines()]
        text = re.sub(r"\b(critical|warning)\b", r'<span class="\1">\1</span>', html.escape("\n".join(lines)))
        page.write_text(TERMINAL.format(command="gpuwatch demo --once", text=text), encoding="utf-8")
        _shoot(chromium, page.as_uri(), IMAGES / "once.png", 1380, 40 + 18 * (len(lines) + 1))
    port = _free_port()
    demo = subprocess.Popen(
        [*GPUWATCH, "demo", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}/readyz")
        _shoot(chromium, f"{address}/", IMAGES / "page.png", 1280, 1500)
    finally:
        demo.terminate()
        demo.wait(10)
    return 0


def _shoot(chromium: str, url: str, to: Path, width: int, height: int) -> None:
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                chromium,
                *flags,
                *quiet,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                f"--screenshot={to}",
                url,
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
    print(to)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _wait(url: str) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
