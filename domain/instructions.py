"""Does a memory read like an instruction (T16)? Instructions rarely match what people say, so they would rest."""

from __future__ import annotations

import re

_COMMANDS = re.compile(
    r"""^\W*(?:
      (?:please\s+)?(?:always|never|don['’]?t|do\s+not|answer|reply|respond|speak|write|talk|call\s+(?:me|him|her|them)|
         use\s|avoid|remember\s+to|make\s+sure|stop\s|refer\s+to|address\s(?!of\b|is\b|book\b))\b
    | (?:por\s+favor,?\s+)?(?:sempre|nunca|n[ãa]o\s+(?:fale|use|responda|diga|escreva)|responda|fale|escreva|chame|
         use\s|evite)\b
    | (?:будь\s+ласка,?\s+)?(?:завжди|ніколи|не\s+(?:пиши|кажи|вживай|відповідай|використовуй)|відповідай|пиши|
         називай|говори|уникай)\b
    | (?:bitte\s+)?(?:immer|niemals?|nie\s|antworte|schreib[e]?|sprich|nenn[e]?|verwende|benutze|vermeide)\b
    | (?:lütfen\s+)?(?:her\s+zaman|daima|asla|hiçbir\s+zaman)\b
    | (?:siempre|nunca|responde|habla|llama|escribe|usa\s|evita)\b
    | (?:toujours|jamais|réponds|parle|appelle|écris|utilise|évite)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_INSIDE = re.compile(
    r"\b(?:always|never)\s+(?:answer|reply|respond|speak|write|talk|call|use|say|mention|address)\b"
    r"|\b(?:should|must)\s+(?:always|never)\b"
    r"|(?:してください|しないでください|答えてください|話してください|呼んでください|必ず.*(?:こと|する)|て(?:ほしい|欲しい))[。.!！]*$"
    r"|\b(?:(?:cevap|yanıt)\s+ver|konuş|söyle|hitap\s+et|kullan|yaz(?=ma))(?:m[ea])?[.!]*$",
    re.IGNORECASE,
)

WARNING = (
    "This reads like an instruction. Instructions rarely match what people say, so this memory would come to rest: "
    "put it into the persona's standing instructions, or pin it."
)


def reads_like_an_instruction(text: str) -> bool:
    """True for orders such as "always answer Juno in Spanish": a guess by wording, in a few languages."""
    return bool(_COMMANDS.search(text) or _INSIDE.search(text))
