"""D16 and D17 in plain words, over texts alone; imports nothing of what it checks.

Every wording of every message has a token of its own, and a model that summarises copies the tokens that it reads. So
the texts themselves say what is in a summary, whatever the numbers and flags claim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

TOKEN = re.compile(r"<<(\w+)>>")


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


def copied(text: str) -> str:
    """What a model makes of a question: its tokens, and nothing else."""
    return "told: " + " ".join(f"<<{token}>>" for token in dict.fromkeys(tokens(text)))


def faults(present: Mapping[str, str], summaries: Sequence[str], sent: Sequence[str], unsent: int) -> list[str]:
    """What is wrong, in words.

    Args:
        present: the messages that are there, by name, with the token of their present wording.
        summaries: the texts that are sent as summary; sent: those of the messages that are sent.
        unsent: how many messages are said to be neither.
    """
    summarised = [token for text in summaries for token in tokens(text)]
    raw = {token for text in sent for token in tokens(text)}
    wrong = [f"{token} is told, and is no wording of a message" for token in {*summarised, *raw} - {*present.values()}]
    wrong += [f"{token} is told twice" for token in set(summarised) if summarised.count(token) > 1]
    missing = [name for name, token in present.items() if token not in raw and token not in summarised]
    if len(missing) > unsent:
        wrong.append(f"{', '.join(missing)} are lost, and only {unsent} are said to be unsent")
    return wrong
