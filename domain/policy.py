"""The policy: every number that a rule leaves to the tenant (SPEC 6), validated in one place."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Policy(BaseModel):
    """The rules' numbers. Immutable; a change of the effective policy is recorded as `PolicyChanged`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    rest_after_days: int = Field(7, ge=1, le=3650, description="Counted days at which a memory rests (T5).")
    match_limit: int = Field(3, ge=0, le=10, description="How many memories one message may bring to mind (T3).")
    match_threshold: float | None = Field(
        None,
        ge=-1,
        le=10,
        description="Lowest score of a reasonable match; left out, the one measured for the model (D5).",
    )
    list_capacity: int = Field(100, ge=1, le=100_000, description="Unpinned memories of a list, desk and drawer (T12).")
    pin_capacity: int = Field(20, ge=0, le=1_000, description="Pinned memories of a list, on top (R9).")
    max_characters: int = Field(500, ge=1, le=20_000, description="Unicode code points of a memory (R9, D10).")
    recent_days: int = Field(7, ge=0, le=3650, description="Days for which a changed text is marked recent (R12).")
    desk_limit: int = Field(100, ge=0, le=10_000, description="Unpinned active memories sent with a reply (R12).")
    model_context: int = Field(
        128_000,
        ge=1_000,
        le=10_000_000,
        description="Tokens that the chat model reads, where a reply does not say (R2).",
    )
    answer_tokens: int = Field(1_024, ge=0, le=1_000_000, description="Tokens of the context kept free for the answer.")
    document_limit: int = Field(4, ge=0, le=50, description="Passages of documents sent with a reply (T17).")
    document_threshold: float | None = Field(
        None,
        ge=-1,
        le=10,
        description="Lowest score of a passage that is sent; left out, a little above that of a memory (D5).",
    )
    document_tokens: int = Field(1_000, ge=0, le=1_000_000, description="Tokens of those passages together (T17).")
    document_bytes: int = Field(10_000_000, ge=1, le=200_000_000, description="Bytes of a document.")
    document_pages: int = Field(1_000, ge=1, le=20_000, description="Pages of a PDF.")
    document_characters: int = Field(2_000_000, ge=1, le=20_000_000, description="Characters of a document's text.")
    document_passages: int = Field(
        10_000, ge=1, le=100_000, description="Passages of all documents of a persona or a server together."
    )
    decay_enabled: bool = Field(True, description="Off: everything counts as active, nothing is forgotten (T11).")

    chunk_messages: int = Field(10, ge=2, le=100, description="Messages of one recent summary (R4).")
    chunks_per_run: int = Field(3, ge=1, le=100, description="Recent summaries made at once, after a turn (R4).")
    recent_summaries: int = Field(4, ge=2, le=20, description="Recent summaries that fold into a merged one (R4).")
    merged_summaries: int = Field(4, ge=2, le=20, description="Merged summaries that fold into the long-term one (R4).")
    condense_over: float = Field(
        1.25, ge=1, le=10, description="A long-term summary over so many times its size is condensed (R6)."
    )
    deep_changes: int = Field(5, ge=1, le=50, description="Changes of one pass of deep memory (R16).")
    deep_messages: int = Field(8, ge=1, le=1_000, description="New messages that a pass of deep memory needs (R16).")
    high_cost_factor: float = Field(
        3.0, ge=1, le=1_000, description="A reply over so many times the median cost of its chat is noticed (R8)."
    )

    @model_validator(mode="after")
    def _finite(self) -> Self:
        for name in ("match_threshold", "document_threshold"):
            if (number := getattr(self, name)) is not None and number != number:
                raise ValueError(f"{name} is not a number")
        return self
