"""Words of any language as terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.projections.words import memory_terms, query_terms


def finds(message: str, memory: str) -> bool:
    return bool(set(query_terms(message).terms) & set(memory_terms(memory)))


@pytest.mark.parametrize(
    ("message", "memory"),
    [
        ("how is Mochi?", "Juno's cat is named Mochi."),
        ("did the cats eat?", "Juno's cat is named Mochi."),
        ("hast du die Katzen gefüttert?", "Junos Katze heißt Mochi."),
        ("Os gatos já comeram?", "O gato do João chama-se Mochi."),
        ("як там котики в Мочі?", "Кота звати Мочі."),
        ("モチは元気?", "ミサキの猫はモチという名前です。"),
        ("猫に餌をあげた?", "彼女は猫を飼っている。"),
        ("Mochi'yi gördün mü?", "Kedinin adı Mochi."),
        ("İZMİR'E NE ZAMAN", "Ayşe İzmir'de yaşıyor."),
        ("жили ли они в москве", "Анна живёт в Москве."),
        ("강아지 이름이 뭐야", "민수의 강아지 이름은 초코다."),
        ("我家的小白呢", "他的猫叫小白。"),
        ("โมจิเป็นยังไงบ้าง", "แมวชื่อโมจิ"),
        ("JOSE?", "José hates coffee."),
        ("ﬁlm", "film night"),  # NFKC
        ("e\u0301clair", "She bakes éclairs and éclair tarts."),  # another normal form
    ],
)
def test_a_message_finds_a_memory_that_shares_a_word_in_any_language(message: str, memory: str) -> None:
    assert finds(message, memory)


@pytest.mark.parametrize(
    ("message", "memory"),
    [
        ("where are you and what is it?", "This is where we are and what it was."),
        ("was ist das denn?", "Das ist, was es ist."),
        ("о чём это вы?", "это то, что они"),
        ("haha 😂", "Juno's cat is named Mochi."),
        ("is she allergic to peanuts?", "Juno has walnuts."),
        ("", "Juno's cat is named Mochi."),
    ],
)
def test_words_that_say_nothing_find_nothing(message: str, memory: str) -> None:
    assert not finds(message, memory)


def test_a_word_in_several_forms_is_one_word_of_the_message() -> None:
    terms = query_terms("the cats and the cat are named Mochi")
    assert sorted(set(terms.words)) == list(range(len(set(terms.words))))
    assert len(terms.terms) > len(set(terms.words)), "a word has more than one form"
    assert len(set(terms.terms)) == len(terms.terms), "a form belongs to one word"


@given(st.text())
def test_any_text_has_terms_that_fit_their_column(text: str) -> None:
    terms = memory_terms(text)
    assert terms == sorted(set(terms)) == memory_terms(text)
    assert all(-(2**31) <= term < 2**31 for term in terms)


@given(st.text())
def test_a_text_finds_itself_if_it_has_words(text: str) -> None:
    query = query_terms(text)
    assert set(query.terms) == set(memory_terms(text))
    assert len(query.terms) == len(query.words)
    assert set(query.words) == set(range(len(set(query.words))))
