"""Questions about a document, and messages about anything else: what the product's own replies find in docs/rules.md.

    python scripts/bench/passages.py

With the local model and the defaults. A question is answered if a passage with the rule that it asks for is sent.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from remembrancer.services import open_memory
from remembrancer.services.formats.probes import read_probes

ROOT = Path(__file__).parents[2]
QUESTIONS = {
    "how many pinned memories can a list hold?": "R9",
    "what happens on a day when the search failed?": "T8",
    "what becomes unreadable when a user is erased?": "D24",
    "after how many unused days does a memory rest?": "T5",
    "who is evicted first from a full list?": "T12",
    "when is a hidden memory searched?": "T10",
    "what does clear all do with pinned memories?": "R18",
    "how is a long-term summary condensed?": "R6",
    "what is a tombstone?": "D13",
    "what happens to the memories of a deleted persona?": "R11",
    "are memories shared between forks of a chat?": "R10",
    "what does the undo of a turn take back?": "D14",
    "may the AI edit a pinned memory?": "R15",
    "what happens with a duplicate of a memory?": "D12",
    "what does until mean for a memory?": "D28",
    "how many changes may a deep memory pass make?": "R16",
    "what are the levels of the live window?": "R3",
    "what is done about an unusually expensive reply?": "R8",
    "does the same request id write twice?": "D19",
    "what happens when the embedding model is changed?": "D23",
    "who may see a notice about a personal memory?": "T15",
    "where do instructions to the persona belong?": "T16",
    "what if two memories have the same score?": "D6",
    "what happens to a summary when a message is edited?": "D17",
}


def main() -> None:
    """Measure and print."""
    english = next(probe for probe in read_probes(None) if probe.language == "en")
    others = {
        "messages about somebody's facts": [text for text, _ in english.touches],
        "small talk": english.small_talk,
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with open_memory(data_dir=Path(folder) / "data", background=False, embed_timeout=30) as memory:
            added = memory.add_document(ROOT / "docs" / "rules.md", persona="mira").document
            memory.engine.runner.catch_up()
            print(f"{added.passages} passages, {added.searchable} with a vector")

            def sent(message: str) -> list[str]:
                return [p.text for p in memory.reply("mira", message=message, users=["juno"]).late.documents]

            right = sum(any(f"**{rule} " in text for text in sent(q)) for q, rule in QUESTIONS.items())
            print(f"questions answered: {right} of {len(QUESTIONS)}")
            for what, messages in others.items():
                found = sum(bool(sent(m)) for m in messages)
                print(f"{what}: {found} of {len(messages)} find a passage")


if __name__ == "__main__":
    main()
