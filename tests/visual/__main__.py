"""Pictures: ``python -m tests.visual`` lists the programs that draw them or runs one by name."""

import sys

from tools.programs import Program, main

IMAGES = "docs/images"
PROGRAMS = {
    "gallery": Program("figures", "tests.visual.gallery", ("build/gallery/index.html",), "5 minutes"),
    "documentation": Program("figures", "tests.visual.gallery", (f"{IMAGES}/*.svg",), "a minute", options=("--docs",)),
    "monitor": Program(
        "screenshots", "tests.visual.monitor_pages", (f"{IMAGES}/monitor_*.png",), "a minute", options=(IMAGES,)
    ),
    "reports": Program(
        "screenshots",
        "tests.visual.report_pages",
        (f"{IMAGES}/report_*.png",),
        "2 minutes",
        options=("build/screenshots", "--pages", IMAGES),
        libraries="pictures-of-paper",
    ),
}

if __name__ == "__main__":
    sys.exit(main("tests.visual", PROGRAMS))
