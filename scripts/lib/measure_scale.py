"""Measures an embedding model on the shipped probe set, and writes down what the score has to know of it (D5).

Which model: REMEMBRANCER_EMBEDDER with its _URL, _MODEL and _KEY; left out, the built-in one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from remembrancer.projections.scoring import Probe, measure, scale_to_json
from remembrancer.services.embedders import Embedder, make_embedder
from remembrancer.services.formats.probes import Probes, read_probes
from remembrancer.services.settings import load_settings

SCALES = Path(__file__).parents[2] / "projections" / "scales"
SECONDS = 600.0
SAME = 1e-4
"""Numbers that differ by less are the same: processors round differently."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/measure-scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only compare with the file that is there")
    check = parser.parse_args().check
    s = load_settings()
    embedder = make_embedder(s.embedder, url=s.embedder_url, model=s.embedder_model, key=s.embedder_key)
    if embedder is None:
        sys.exit("There is no model to measure: REMEMBRANCER_EMBEDDER is none.")
    languages = track(read_probes(None), "Embedding the probe set", console=Console(stderr=True))
    scale = scale_to_json(measure(embedder.model, [_probe(embedder, language) for language in languages]))
    print("\n".join(f"{name:16}{value}" for name, value in scale.items() if not isinstance(value, tuple)))

    file = SCALES / f"{embedder.model.replace(':', '-')}.json"
    if not check:
        file.write_text(json.dumps(scale) + "\n", encoding="utf-8")
        print(f"Written to {file}.")
        return
    if not file.is_file():
        sys.exit(f"There is no {file} yet.")
    apart = max(abs(a - b) for a, b in zip(_numbers(scale), _numbers(json.loads(file.read_bytes())), strict=True))
    verdict = f"{file}: no number is further from this than {apart:.5f}."
    print(verdict) if apart <= SAME else sys.exit(f"{verdict} That is too far.")


def _probe(embedder: Embedder, probes: Probes) -> Probe:
    touches = [text for text, _ in probes.touches]
    return Probe(
        facts=probes.facts,
        touches=touches,
        talk=probes.small_talk,
        touched=[fact for _, fact in probes.touches],
        fact_vectors=np.stack(embedder.embed_passages(probes.facts, timeout=SECONDS)),
        touch_vectors=np.stack([embedder.embed_query(text, timeout=SECONDS) for text in touches]),
        talk_vectors=np.stack([embedder.embed_query(text, timeout=SECONDS) for text in probes.small_talk]),
    )


def _numbers(scale: dict[str, Any]) -> Iterator[float]:
    """Every number of a scale, in the order of its fields' names."""
    for name in sorted(scale):
        if name != "model":
            yield from np.atleast_1d(scale[name])


if __name__ == "__main__":
    main()
