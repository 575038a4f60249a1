"""Texts: what is one, how long it may be, when two are the same (R9, D10, D12, D24, C14)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from remembrancer.domain.errors import InvalidInput, TextTooLong
from remembrancer.domain.text import ERASED, check_text, folded
from tests.domain.support import fold, in_words, saved


@for_all(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60))
def test_what_is_taken_is_taken_as_it_is(text: str):  # D10
    if text.strip():
        assert check_text(text, 60) is text


@pytest.mark.parametrize("limit", [1, 500, 501])
def test_the_limit_is_the_policy_s(limit: int):  # R9, D10
    assert check_text("\u00e9" * limit, limit)
    with pytest.raises(TextTooLong) as refused:
        check_text("\u00e9" * (limit + 1), limit)
    in_words(refused.value, limit, limit + 1)
    assert refused.value.status == 409


def test_a_normal_form_that_would_fit_does_not_make_a_long_text_fit():  # D10
    """250 letters that look like 250, sent as 501 code points."""
    text = "e\u0301" * 250 + "!"
    assert len(unicodedata.normalize("NFC", text)) == 251
    with pytest.raises(TextTooLong):
        check_text(text, 500)


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_half_a_surrogate_pair_is_no_text_and_a_whole_one_is(half: str):  # D10
    with pytest.raises(InvalidInput):
        check_text(half, 500)
    assert check_text("\U0001f431", 500)


def test_being_no_text_comes_before_being_too_long():
    with pytest.raises(InvalidInput):
        check_text("\x00" * 501, 500)
    with pytest.raises(InvalidInput):
        check_text(" " * 501, 500)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Juno", "JUNO"),
        ("Stra\u00dfe", "STRASSE"),
        ("a  b", " a\t\nb "),
        ("a\u3000b", "a b"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01n", "fin"),
        ("\uff2a\uff35\uff2e\uff2f", "juno"),
        ("\u30ab\u30bf\u30ab\u30ca", "\uff76\uff80\uff76\uff85"),
        ("\u041a\u0418\u0407\u0412", "\u043a\u0438\u0457\u0432"),
    ],
)
def test_the_same_in_two_writings(one: str, other: str):  # D12
    assert folded(one) == folded(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("caf\u00e9", "cafe"),
        ("Juno.", "Juno"),
        ("ab", "a b"),
        ("\u304b", "\u30ab"),
        ("peanuts", "walnuts"),
        ("I", "\u0130"),
    ],
)
def test_not_the_same(one: str, other: str):  # D12
    assert folded(one) != folded(other)


@for_all(st.text(st.characters(exclude_categories=["Cs"])))
def test_folding_twice_is_folding_once(text: str):  # D12
    assert folded(folded(text)) == folded(text)


@for_all(st.text(st.characters(exclude_categories=["Cs"])))
def test_normal_forms_of_one_text_are_the_same(text: str):  # D12
    forms = {folded(unicodedata.normalize(form, text)) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert forms == {folded(text)}


def test_an_erased_text_is_equal_to_none_not_even_to_itself():  # D24
    assert fold(saved(1, ERASED), saved(2, ERASED)).same_text(ERASED) is None
