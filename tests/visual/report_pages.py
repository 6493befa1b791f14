"""Take screenshots of the five reports of `report_cases` in Chromium: desk, dark, phone, and pages of paper.

``make pictures NAME=reports`` writes them to build/screenshots. All sheets of paper stand side by side; they are
pictures of the PDF that the browser prints. ``--pages`` also writes the first screens that the documentation shows.
"""

import argparse
import io
import shutil
from pathlib import Path

import pypdfium2
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.visual.report_cases import CASES

VIEWS = {
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
}
# Pictures of the documentation: screenshot, and the width and height that are shown of it.
SHOWN = {
    "report_desk": ("rare_desk", 1280, 730),
    "report_dark": ("multiclass_dark", 1280, 730),
    "report_phone": ("many_groups_phone", 780, 1560),
}


def main() -> None:
    """Write the reports, take their screenshots, and cut those of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--pages", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in options.names:
            page = options.folder / f"{name}.html"
            CASES[name](999).to_html(page)
            for view in VIEWS:
                take(browser, page, view)
            print_pages(browser, page)
        browser.close()
    for name, (source, width, height) in SHOWN.items() if options.pages else ():
        picture = Image.open(options.folder / f"{source}.png").convert("RGB").crop((0, 0, width, height))
        picture.quantize(128).save(options.pages / f"{name}.png", optimize=True)


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
    main()
