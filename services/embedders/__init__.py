"""Texts to vectors: a local model, any OpenAI-compatible endpoint, or none.

An embedder gives unit vectors that were checked, or fails; on failure a reply goes on without search (T8).
"""

from __future__ import annotations

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.embedders.embedder import Embedder, EmbedderFailed, Vector

__all__ = ["Embedder", "EmbedderFailed", "Vector", "make_embedder"]


def make_embedder(
    kind: str,
    *,
    url: str | None = None,
    model: str | None = None,
    key: str | None = None,
    dimensions: int | None = None,
) -> Embedder | None:
    """The embedder that the settings name, or None for ``none``: then nothing is searched and nothing ages (T11).

    Nothing is loaded and nobody is asked until the first text, or `Embedder.warm`.

    Args:
        kind: ``local``, ``openai`` or ``none``.
        url: base address of an OpenAI-compatible endpoint, with its ``/v1``; left out, OpenAI itself.
        model: the endpoint's name of the model; needed for ``openai``.
        key: the endpoint's key; many local servers want none.
        dimensions: length of the vectors already stored for an endpoint's model; an answer of another is refused.

    Raises:
        InvalidInput: an unknown kind, or no model named for ``openai``.
    """
    match kind:
        case "none":
            return None
        case "local":
            from remembrancer.services.embedders.local import LocalEmbedder

            return LocalEmbedder()
        case "openai":
            if not model:
                raise InvalidInput(
                    "No embedding model is named for the endpoint.",
                    hint="Set REMEMBRANCER_EMBEDDER_MODEL, for instance to text-embedding-3-small.",
                )
            from remembrancer.services.embedders.openai import OpenAIEmbedder

            return OpenAIEmbedder(url=url, model=model, key=key, dimensions=dimensions)
        case _:
            raise InvalidInput(
                f"There is no embedder {kind!r}.", hint="Set REMEMBRANCER_EMBEDDER to local, openai or none."
            )
