"""Chat models: any OpenAI-compatible endpoint, or none; then what needs one waits, and nothing is lost (D16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remembrancer.services.chat_models.model import (
    Answered,
    ChatModel,
    ModelFailed,
    Prices,
    Spoken,
    ToolCall,
    Usage,
)

__all__ = ["Answered", "ChatModel", "ModelFailed", "Prices", "Spoken", "ToolCall", "Usage", "make_chat_model"]


def make_chat_model(
    model: str | None,
    *,
    url: str | None = None,
    key: str | None = None,
    prices: Mapping[str, Sequence[float]] | None = None,
) -> ChatModel | None:
    """The chat model that the settings name, or None. Nobody is asked until the first question.

    Args:
        model: the endpoint's name of the model.
        url: base address of an OpenAI-compatible endpoint, with its ``/v1``; left out, OpenAI itself.
        key: the endpoint's key; many local servers want none.
        prices: by model, the price of a million tokens read and of a million written.
    """
    if not model:
        return None
    from remembrancer.services.chat_models.openai import OpenAIChatModel

    found = (prices or {}).get(model)
    return OpenAIChatModel(model=model, url=url, key=key, prices=None if found is None else Prices(*found))
