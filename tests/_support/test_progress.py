"""The progress bar: when it is drawn and erased."""

import io

from calibrant._support import progress as _progress


def run(monkeypatch, *, show, count=5, delay=-1.0):
    monkeypatch.setattr(_progress, "_DELAY", delay)
    monkeypatch.setattr(_progress, "_REDRAW_EVERY", -1.0)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    items = list(_progress.progress_bar(range(count), count, "drawing", show=show))
    assert items == list(range(count))
    return stream.getvalue()


def test_a_progress_bar_counts_and_is_erased(monkeypatch):
    text = run(monkeypatch, show=True)
    assert "drawing" in text
    assert "5/5" in text
    assert text.endswith("\r")
    assert text.rsplit("\r", 2)[1].strip() == ""


def test_no_progress_bar_without_a_terminal(monkeypatch):
    assert run(monkeypatch, show=None) == ""  # a string is not a terminal
    assert run(monkeypatch, show=False) == ""


def test_no_progress_bar_for_short_work(monkeypatch):
    assert run(monkeypatch, show=True, delay=60.0) == ""
