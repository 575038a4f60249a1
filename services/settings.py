"""The one settings object: keyword, then environment, then file (SPEC 6). What a tenant recorded stands above."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import check_key
from remembrancer.domain.policy import Policy

CONFIG = Path(platformdirs.user_config_dir("remembrancer")) / "remembrancer.toml"

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Every setting of an installation. Environment names are REMEMBRANCER_ and the field in capitals."""

    model_config = SettingsConfigDict(
        env_prefix="REMEMBRANCER_", extra="ignore", frozen=True, populate_by_name=True, env_ignore_empty=True
    )

    database_url: str | None = Field(None, description="Address of the database; left out, an embedded one.")
    data_dir: Path | None = Field(None, description="Where the embedded database lives.")
    redis_url: str | None = Field(None, description="Where news of commits go between processes; optional.")
    tenant: str = Field("default", description="Whose memories these are.")

    embedder: Literal["local", "openai", "none"] = "local"
    embedder_url: str | None = None
    embedder_model: str | None = None
    embedder_key: str | None = Field(None, repr=False)
    embedder_previous_url: str | None = Field(
        None, description="While the model changes: where the one before is, if not where it was (D23)."
    )
    embedder_previous_key: str | None = Field(None, repr=False)
    embed_timeout: float = Field(2.0, gt=0, le=60, description="Seconds that a reply waits for its embedding.")

    chat_model: str | None = Field(None, description="The endpoint's name of the model that talks and summarises.")
    chat_model_url: str | None = None
    chat_model_key: str | None = Field(None, repr=False)
    chat_model_timeout: float = Field(120.0, gt=0, le=3600, description="Seconds for one question, all tries.")
    chat_prices: dict[str, tuple[Price, Price]] = Field(
        {}, description="By model, the price of a million tokens read and of a million written."
    )

    memory_decay_enabled: bool | None = Field(
        None, validation_alias=AliasChoices("MEMORY_DECAY_ENABLED", "memory_decay_enabled"),
        description="Off for the whole installation, over any tenant's setting (T11).",
    )  # fmt: skip

    rest_after_days: int | None = None
    match_limit: int | None = None
    match_threshold: float | None = None
    list_capacity: int | None = None
    pin_capacity: int | None = None
    max_characters: int | None = None
    recent_days: int | None = None
    desk_limit: int | None = None
    model_context: int | None = None
    answer_tokens: int | None = None
    document_limit: int | None = None
    document_threshold: float | None = None
    document_tokens: int | None = None
    document_bytes: int | None = None
    document_pages: int | None = None
    document_characters: int | None = None
    document_passages: int | None = None
    decay_enabled: bool | None = None
    chunk_messages: int | None = None
    chunks_per_run: int | None = None
    deep_changes: int | None = None
    deep_messages: int | None = None
    recent_summaries: int | None = None
    merged_summaries: int | None = None
    condense_over: float | None = None
    high_cost_factor: float | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keyword, environment, file, in this order."""
        file = EnvSettingsSource(settings_cls).env_vars.get("remembrancer_config")
        toml = TomlConfigSettingsSource(settings_cls, Path(file) if file else CONFIG)
        return init_settings, env_settings, toml

    def policy(self, own: dict[str, Any] | None = None) -> Policy:
        """The effective policy: what the tenant has recorded (`own`) over this installation's.

        Raises:
            InvalidInput: a number out of its bounds.
        """
        fields = {name: value for name in Policy.model_fields if (value := getattr(self, name)) is not None}
        fields |= own or {}
        if self.memory_decay_enabled is False or self.embedder == "none":
            fields["decay_enabled"] = False  # T11: over any tenant's setting
        try:
            return Policy(**fields)
        except ValidationError as error:
            raise invalid(error) from error


def invalid(error: ValidationError) -> InvalidInput:
    """What pydantic found, as one sentence of our own."""
    said = "; ".join(
        f"{'.'.join(str(p) for p in e['loc']) or 'value'}: {e['msg'][:1].lower()}{e['msg'][1:]}" for e in error.errors()
    )
    return InvalidInput(f"The input does not fit: {said}.", hint="See docs/rules.md for the bounds.")


def load_settings(**keywords: Any) -> Settings:
    """The settings of this process; keywords that are None count as left out.

    Raises:
        InvalidInput: an unknown keyword, or a value that does not fit.
    """
    given = {k: v for k, v in keywords.items() if v is not None}
    if unknown := sorted(set(given) - set(Settings.model_fields)):
        raise InvalidInput(
            f"There is no setting {', '.join(unknown)}.",
            hint=f"There are: {', '.join(sorted(Settings.model_fields))}.",
        )
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise invalid(error) from error
    except SettingsError as error:
        raise InvalidInput(
            f"A setting cannot be read: {error}.", hint='Write a table as JSON, like {"a-model": [0.15, 0.6]}.'
        ) from error
    check_key("tenant", settings.tenant)
    settings.policy()
    return settings
