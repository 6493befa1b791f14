import pytest
from web_browser import browser, open_tab

__all__ = ["browser", "open_tab", "opened"]


@pytest.fixture
def opened(open_tab, tmp_path):
    """Open the text of a page with the network off."""

    def open_(text, **options):
        (tmp_path / "report.html").write_text(text, encoding="utf-8")
        return open_tab((tmp_path / "report.html").as_uri(), offline=True, **options)

    return open_
