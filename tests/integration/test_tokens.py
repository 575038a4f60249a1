"""Token counts by the real vocabulary."""

from __future__ import annotations

import pytest

from remembrancer.services.tokens import count_tokens, count_tokens_of_each

# Counted with OpenAI's own tokenizer and its o200k_base vocabulary.
KNOWN = {
    "": 0,
    "Juno's cat is named Mochi.": 9,
    "A minha irmã mudou-se para o Porto em março.": 11,
    "Джуно любить чорний чай без цукру": 12,
    "ジュノの猫の名前はモチです": 10,
    "👩\u200d👩\u200d👧 see you 🎉🎉": 14,
    "1234567 + 89 = 1,234,656\n\n\n   end": 16,
    "<|endoftext|>": 7,
    "a" * 1000: 125,
    "ﷺ é e\u0301": 5,
}


@pytest.mark.parametrize(("text", "tokens"), KNOWN.items())
def test_a_text_counts_as_in_openais_own_tokenizer(text: str, tokens: int):
    assert count_tokens(text) == tokens


def test_many_texts_count_as_each_alone():
    assert count_tokens_of_each(list(KNOWN)) == list(KNOWN.values())
    assert count_tokens_of_each([]) == []


def test_half_a_surrogate_pair_is_counted_and_not_refused():
    assert count_tokens("hm \ud83d") == count_tokens("hm ?")
