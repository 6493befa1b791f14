"""The measure of readability that `make readability` runs."""

import pytest

from tools import readability

PAGE = """
Title
=====

The model predicts. It is calibrated, and ``cb.ece`` is small.

.. doctest::

   >>> one = "This line of code is not a sentence."

- A list has one sentence here.
"""


def test_code_titles_and_directives_do_not_count():
    assert readability.read(PAGE).counts[:2] == (3, 16)


def test_the_grade_is_that_of_flesch_and_kincaid():
    found = readability.Reading(sentences=2, words=20, syllables=30)
    assert found.grade == pytest.approx(0.39 * 10 + 11.8 * 1.5 - 15.59)


def test_longer_sentences_and_words_have_a_higher_grade():
    easy = readability.read("The cat sat on the mat. The dog ran to the cat.")
    hard = readability.read(
        "Recalibration of probabilistic classification necessitates representative validation observations."
    )
    assert hard.grade > easy.grade + 5


@pytest.mark.parametrize(("word", "count"), [("model", 2), ("rate", 1), ("calibration", 4), ("the", 1)])
def test_syllables_are_groups_of_vowels(word, count):
    assert readability.syllables(word) == count


def test_sentences_of_more_than_25_words_are_long():
    assert readability.read("A " + "word " * 25 + "ends here.").long == 1
    assert readability.read("A " + "word " * 20 + "ends here.").long == 0
