"""The check of phrases that `make lint` runs."""

import pytest

from tools import check_words

PHRASES = {"old phrase": "new term"}


@pytest.mark.parametrize(
    "text",
    [
        "an old phrase",
        "An Old\nphrase",
        "x = 1  # an old\n    # phrase",
        'f("an old "\n  f"phrase")',
        "// old\n   // phrase",
        "old  phrase.",
    ],
)
def test_a_phrase_is_found_in_any_case_and_across_lines(text):
    assert [phrase for _, phrase in check_words.find(text, PHRASES)] == ["old phrase"]


@pytest.mark.parametrize("text", ["bold phrase", "old phrases", "old: phrase", "an old\n\nphrase of another paragraph"])
def test_parts_of_words_and_separate_sentences_are_not_found(text):
    assert not list(check_words.find(text, PHRASES))


def test_the_line_of_each_phrase_is_given():
    assert list(check_words.find("a\nold phrase\nb\nold\nphrase", PHRASES)) == [(2, "old phrase"), (4, "old phrase")]


def test_each_banned_phrase_has_a_replacement():
    phrases = check_words.read_phrases(check_words.PHRASES.read_text(encoding="utf-8"))
    assert phrases
    assert all(phrases.values())
