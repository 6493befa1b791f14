"""Take screenshots of the five reports of `tools.report_cases` in Chromium: desk, dark, phone, and pages of paper.

    python -m tools.report_screenshots build/screenshots

Pages of paper are taken from the PDF that the browser prints, side by side; that needs pypdfium2.
"""

import io
import shutil
import sys
from pathlib import Path

import pypdfium2
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tools.report_cases import CASES

VIEWS = {
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
}


def main(folder: Path, names: list[str]) -> None:
    """Write the reports and take their screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        CASES[name](999).to_html(folder / f"{name}.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names or CASES:
            for view in VIEWS:
                take(browser, folder / f"{name}.html", view)
            print_pages(browser, folder / f"{name}.html")
        browser.close()


def take(browser: Browser, page: Path, view: str) -> None:
    """Take one screenshot of the whole page."""
    context = browser.new_context(**VIEWS[view])
    tab = context.new_page()
    tab.goto(page.resolve().as_uri())
    tab.screenshot(path=page.with_name(f"{page.stem}_{view}.png"), full_page=True)
    context.close()


def print_pages(browser: Browser, page: Path) -> None:
    """Print the page on A4 and put pictures of all sheets side by side."""
    tab = browser.new_page()
    tab.goto(page.resolve().as_uri())
    sheets = [sheet.render(scale=1.1).to_pil() for sheet in pypdfium2.PdfDocument(io.BytesIO(tab.pdf(format="A4")))]
    tab.close()
    gap = 8
    wide = sum(sheet.width + gap for sheet in sheets)
    joined = Image.new("RGB", (wide, sheets[0].height), "grey")
    for place, sheet in enumerate(sheets):
        joined.paste(sheet, (place * (sheet.width + gap), 0))
    joined.save(page.with_name(f"{page.stem}_print.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
