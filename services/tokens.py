"""How many tokens a text costs a language model: the prompt budgets of R2, R3 and R6, and what a desk costs.

Counted with o200k_base, the vocabulary of current OpenAI models, compiled into the package `toktok-rs`: no network, no
data files. Other models count a little differently; a budget in tokens is a budget by this count.
"""

from __future__ import annotations

from collections.abc import Sequence

ENCODING = "o200k_base"


def count_tokens(text: str) -> int:
    """Tokens of a text. The first call loads the vocabulary (0.3 s); later ones take some 30 microseconds.

    What looks like a special token (``<|endoftext|>``) counts as the plain text that it is here.
    """
    return count_tokens_of_each([text])[0]


def count_tokens_of_each(texts: Sequence[str]) -> list[int]:
    """Tokens of each text, in one call."""
    import toktok

    readable = [text.encode("utf-8", "replace").decode() for text in texts]
    counts: list[int] = toktok.batch_count(readable, ENCODING, threads=1)
    return counts
