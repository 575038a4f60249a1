"""What every embedder promises, how it fails, and the check that each answer passes before anything is done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from remembrancer.domain.errors import Unavailable

Vector = npt.NDArray[np.float32]


class EmbedderFailed(Unavailable):
    """No vector that can be trusted came in time. Nothing is kept of the answer; a reply goes on without search (T8).

    `reason` says what was wrong in a few words. It holds neither the text nor anything that the endpoint wrote.
    """

    type = "embedder-failed"

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"The embedding model gave no usable answer: {reason}.", hint=hint, reason=reason)
        self.reason = reason


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to share between threads."""

    @property
    def model(self) -> str:
        """A name that stays the same as long as the vectors are comparable, such as ``local:e5-small-q4`` (D23)."""

    @property
    def dimensions(self) -> int | None:
        """Length of the vectors; None until it is known from a first answer."""

    def embed_query(self, text: str, *, timeout: float) -> Vector:
        """The vector of a message that is searched with: float32, shape (dimensions,), length 1.

        Args:
            text: given whole, never cut.
            timeout: seconds for all of it, tries again included. It holds whatever the model does.

        Raises:
            EmbedderFailed: the only error.
        """

    def embed_passages(self, texts: Sequence[str], *, timeout: float) -> list[Vector]:
        """The vectors of texts that are searched for, one each and in their order: all of them or none.

        `timeout` is for all of them together. Shapes and errors are those of `embed_query`.
        """

    def warm(self, *, timeout: float) -> None:
        """Loads what the first text would have to wait for, and asks nobody. Raises EmbedderFailed where it cannot."""

    def close(self) -> None:
        """Frees threads and connections. Nothing may be embedded afterwards."""


def unit_vectors(answer: Sequence[object], *, texts: int, dimensions: int | None) -> list[Vector]:
    """The vectors of an answer, brought to length 1, if there is one for each text and each can be trusted (C25).

    Args:
        answer: per text a sequence of numbers.
        texts: how many texts were sent.
        dimensions: the length that vectors of this model have; None takes that of the first one for all.

    Raises:
        EmbedderFailed: too few or too many vectors, another length than before, no numbers, NaN, infinity, zeros.
    """
    if len(answer) != texts:
        raise EmbedderFailed(f"{len(answer)} vectors for {texts} texts")
    vectors = []
    for numbers in answer:
        vector = _unit_vector(numbers)
        dimensions = dimensions or vector.size
        if vector.size != dimensions:
            raise EmbedderFailed(
                f"a vector of {vector.size} dimensions where this model has {dimensions}",
                hint="Another model behind the same name needs a name of its own: change REMEMBRANCER_EMBEDDER_MODEL.",
            )
        vectors.append(vector)
    return vectors


def _unit_vector(numbers: object) -> Vector:
    try:
        vector = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise EmbedderFailed("something that is no list of numbers") from None
    if vector.ndim != 1 or vector.size == 0:
        raise EmbedderFailed("something that is no list of numbers")
    largest = np.abs(vector).max()
    if not np.isfinite(largest):
        raise EmbedderFailed("a vector with NaN or infinity in it")
    if largest == 0:
        raise EmbedderFailed("a vector of nothing but zeros")
    vector = vector / largest  # first, so that the squares neither overflow nor vanish
    unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit
