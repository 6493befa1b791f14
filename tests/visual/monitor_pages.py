"""Take the screenshots of the pages of the monitor's demo in Chromium: light and dark, a phone, and print.

``make pictures NAME=monitor`` writes them to docs/images.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

MODEL = "/model?name=digits-filtered"
DESK = {"width": 1200, "height": 800}
PHONE = {"width": 390, "height": 844}
# Name: path, height of the picture (None: the whole page), options of the browser.
SHOTS: dict[str, tuple[str, int | None, dict]] = {
    "monitor_overview": ("/", None, {"viewport": {"width": 1200, "height": 640}}),
    "monitor_model": (MODEL, 1560, {"viewport": DESK}),
    "monitor_dark": (MODEL, 1560, {"viewport": DESK, "color_scheme": "dark"}),
    "monitor_phone": (MODEL, 1700, {"viewport": PHONE, "device_scale_factor": 1.5}),
    "monitor_print": (MODEL, None, {"viewport": {"width": 794, "height": 1123}}),
}


def main(folder: Path) -> None:
    """Run the demo, serve its store and take all screenshots."""
    with tempfile.TemporaryDirectory() as place:
        calibrant = [sys.executable, "-m", "calibrant"]
        subprocess.run(
            [*calibrant, "demo", "--monitor", "--no-browser", "--duration", "0", "--folder", place], check=True
        )
        command = [*calibrant, "serve", "--store", f"{place}/monitor.db", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                address = re.search(r"http://\S+", server.stdout.readline()).group()
                take_all(address, folder)
            finally:
                server.terminate()


def take_all(address: str, folder: Path) -> None:
    """Take the screenshots of a running service."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in SHOTS:
            path = folder / f"{name}.png"
            take(browser, address, name, path)
            print(f"{path} {path.stat().st_size:,} bytes")
        browser.close()


def take(browser: Browser, address: str, name: str, path: Path) -> None:
    """Take one screenshot."""
    page, height, options = SHOTS[name]
    context = browser.new_context(**options)
    tab = context.new_page()
    tab.goto(address + page)
    time.sleep(0.5)  # the stream of events is open
    if name.endswith("print"):
        tab.emulate_media(media="print")
    tab.screenshot(path=path, full_page=True)
    context.close()
    picture = Image.open(path).convert("RGB")
    if height is not None:
        scale = options.get("device_scale_factor", 1)
        picture = picture.crop((0, 0, picture.width, min(picture.height, round(height * scale))))
    picture.save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
