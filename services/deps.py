"""What every service works with: one store, one clock, one policy, one tenant, the models that serve it."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from remembrancer.domain import events as e
from remembrancer.domain.chat import Chat, evolve_chat
from remembrancer.domain.errors import Unavailable
from remembrancer.domain.identity import tenant_stream
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import (
    Person,
    Persona,
    Server,
    Tenant,
    evolve_person,
    evolve_persona,
    evolve_server,
    evolve_tenant,
)
from remembrancer.projections.scoring import threshold_of
from remembrancer.services.clock import Clock, make_id
from remembrancer.services.embedders import Embedder
from remembrancer.services.models import Models
from remembrancer.services.settings import Settings
from remembrancer.services.store import Batch, EventStore, Fold, Loaded, Request, VersionConflict

log = logging.getLogger("remembrancer")
_LIST = TypeAdapter(MemoryList)

LIST = Fold("list@2", MemoryList(), evolve, _LIST.dump_json, _LIST.validate_json)
PERSON: Fold[Person] = Fold("person@1", Person(), evolve_person)
SERVER: Fold[Server] = Fold("server@1", Server(), evolve_server)
PERSONA: Fold[Persona] = Fold("persona@1", Persona(), evolve_persona)
TENANT: Fold[Tenant] = Fold("tenant@1", Tenant(), evolve_tenant)
CHAT: Fold[Chat] = Fold("chat@2", Chat(), evolve_chat, TypeAdapter(Chat).dump_json, TypeAdapter(Chat).validate_json)


@dataclass(slots=True)
class Deps:
    """Shared by all services of one `open_memory`."""

    store: EventStore
    clock: Clock
    settings: Settings
    models: Models
    _policy_lock: threading.Lock = field(default_factory=threading.Lock)
    _recorded: tuple[Policy, int] | None = None
    """The policy that this process last found in force, and the version that says it."""

    @property
    def embedder(self) -> Embedder | None:
        """The model that serves, whatever the settings name (D23); None where the settings want none (T11)."""
        return self.models.serving

    @embedder.setter
    def embedder(self, embedder: Embedder | None) -> None:
        self.models.serving = embedder

    @property
    def tenant(self) -> str:
        """Whose memories these are."""
        return self.settings.tenant

    @property
    def tenant_stream(self) -> UUID:
        """The stream of the tenant's policy."""
        return tenant_stream(self.tenant)

    def now(self) -> datetime:
        """The present moment, aware UTC."""
        return self.clock()

    def policy(self, tenant: Loaded[Tenant]) -> tuple[Policy, int]:
        """The effective policy and the version of the tenant's stream that says it. A change is recorded once by each
        process that brings it (SPEC 6)."""
        effective = self.effective(dict(tenant.state.own))
        if effective == tenant.state.policy:
            self._recorded = (effective, tenant.version)
            return self._recorded
        with self._policy_lock:
            if self._recorded is None or self._recorded[0] != effective:
                try:
                    self._recorded = self._record(tenant, effective)
                except Unavailable as unavailable:  # a standby, say: reading goes on
                    log.warning("The policy of this process is not recorded: %s", unavailable)
                    return effective, tenant.version
            return self._recorded

    def effective(self, own: dict[str, Any]) -> Policy:
        """The policy in force with these settings of the tenant's own. Without an embedding model decay is off (T11).

        Raises:
            InvalidInput: a number out of its bounds.
        """
        policy = self.settings.policy(own)
        return policy if self.embedder is not None else policy.model_copy(update={"decay_enabled": False})

    def _record(self, tenant: Loaded[Tenant], policy: Policy) -> tuple[Policy, int]:
        """Append `PolicyChanged`, behind whatever others record at the same moment."""
        shard = self.tenant_stream.bytes[0]
        while policy != tenant.state.policy:
            event = e.PolicyChanged(
                id=make_id(shard),
                tenant=self.tenant,
                actor="system",
                policy=policy.model_dump(mode="json"),
                own=dict(tenant.state.own),
            )
            try:
                self.store.append(
                    [Batch(self.tenant_stream, [event], expected=tenant.version)],
                    request=Request(self.tenant, shard, verb="set_policy"),
                    now=self.now(),
                )
            except VersionConflict:
                tenant = self.store.load(self.tenant_stream, TENANT)
                policy = self.effective(dict(tenant.state.own))
            else:
                return policy, tenant.version + 1
        return policy, tenant.version

    def threshold(self, policy: Policy, model: str | None = None) -> float | None:
        """The lowest score of a reasonable match with a model, the one that serves if none is named; None without
        a model, or where nobody has measured it (D5)."""
        if policy.match_threshold is not None:
            return policy.match_threshold
        if model is None and self.embedder is not None:
            model = self.embedder.model
        return None if model is None else threshold_of(model)
