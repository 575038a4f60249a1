"""Settings of people, servers, personas and tenants, and the policy (T10, T15, T16, R17, D13, D24, D25, SPEC 6)."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from remembrancer.domain import events as e
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import (
    Person,
    Persona,
    Server,
    Tenant,
    Tombstones,
    evolve_person,
    evolve_persona,
    evolve_server,
    evolve_tenant,
)
from tests.domain.support import DAY, happening, m, recorded


def after(evolve, state, kind: type[e.Event], **fields: object):
    return evolve(state, recorded(*happening(kind, DAY, **fields)))


def test_by_default_all_is_on_and_everyone_is_told():  # T10, T15, R17
    assert (Person().privacy, Person().not_learning) == ("everywhere", ())
    assert (Server().notices, Server().blocklist, Server().personal_memories) == ("everyone", (), True)
    assert (Server().private, Server().not_learning) == (False, ())
    assert (Persona().learns, Persona().deleted) == (True, False)


def test_a_person_s_settings_are_the_last_ones():  # T10, R17
    person = after(evolve_person, Person(), e.PersonChanged, privacy="nowhere", not_learning=("mira",))
    assert (person.privacy, person.not_learning) == ("nowhere", ("mira",))
    assert after(evolve_person, person, e.PersonChanged).privacy == "everywhere"


def test_a_server_s_settings_are_the_last_ones():  # T10, T15, R17
    fields = {
        "notices": "managers", "blocklist": ("juno",), "personal_memories": False, "private": True,
        "not_learning": ("mira",),
    }  # fmt: skip
    server = after(evolve_server, Server(), e.ServerChanged, **fields)
    assert {name: getattr(server, name) for name in fields} == fields


def test_tombstones_outlive_a_change_of_settings():  # D13
    placed = {"list": m(1), "memory": m(2), "sentence": "Geese."}
    person = after(evolve_person, Person(), e.TombstonePlaced, **placed)
    assert after(evolve_person, person, e.PersonChanged, privacy="nowhere").tombstones.sentences == {"geese."}
    server = after(evolve_server, Server(), e.TombstonePlaced, **placed)
    assert after(evolve_server, server, e.ServerChanged).tombstones.sentences == {"geese."}


def test_erasing_a_subject_takes_its_tombstones_too():  # D24
    person = after(evolve_person, Person(), e.TombstonePlaced, list=m(1), memory=m(2), sentence="Geese.")
    assert after(evolve_person, person, e.SubjectErased).tombstones == Tombstones()


def test_a_persona_that_is_defined_again_after_its_deletion_is_there_again():  # T16, D25
    persona = after(evolve_persona, Persona(), e.PersonaDefined, persona="mira", name="Mira", instructions="Be kind.")
    assert (persona.name, persona.instructions, persona.deleted) == ("Mira", "Be kind.", False)
    gone = after(evolve_persona, persona, e.PersonaDeleted)
    assert gone.deleted
    back = after(evolve_persona, gone, e.PersonaDefined, persona="mira", name="Mira", learns=False)
    assert (back.deleted, back.learns) == (False, False)


def test_events_of_others_change_nothing():
    stranger = {"privacy": "nowhere"}
    assert after(evolve_server, Server(), e.PersonChanged, **stranger) == Server()
    assert after(evolve_persona, Persona(), e.PersonChanged, **stranger) == Persona()
    assert after(evolve_tenant, Tenant(), e.PersonChanged, **stranger) == Tenant()
    assert after(evolve_person, Person(), e.ServerChanged, blocklist=("juno",)) == Person()


def test_the_policy_of_a_day_is_read_back_whatever_fields_it_has_had():  # SPEC 6
    recorded_policy = Policy(rest_after_days=10).model_dump() | {"a_number_of_long_ago": 3}
    tenant = after(evolve_tenant, Tenant(), e.PolicyChanged, policy=recorded_policy, own={"rest_after_days": 10})
    assert tenant.policy == Policy(rest_after_days=10)
    assert tenant.own == {"rest_after_days": 10}


def test_the_defaults_are_those_of_the_rules():  # SPEC 6, T3, T5, T12, R9, R12
    assert Policy().model_dump() == {
        "rest_after_days": 7, "match_limit": 3, "match_threshold": None, "list_capacity": 100, "pin_capacity": 20,
        "max_characters": 500, "recent_days": 7, "desk_limit": 100, "decay_enabled": True,
        "model_context": 128_000, "answer_tokens": 1_024, "document_limit": 4, "document_threshold": None,
        "document_tokens": 1_000,
        "document_bytes": 10_000_000, "document_pages": 1_000, "document_characters": 2_000_000,
        "document_passages": 10_000,
        "deep_changes": 5, "deep_messages": 8, "chunk_messages": 10, "chunks_per_run": 3,
        "recent_summaries": 4, "merged_summaries": 4, "condense_over": 1.25, "high_cost_factor": 3.0,
    }  # fmt: skip


def test_a_drawer_may_be_far_larger_than_the_desk():  # SPEC 6
    policy = Policy(list_capacity=50_000)
    assert (policy.list_capacity, policy.desk_limit) == (50_000, 100)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rest_after_days": 0}, {"rest_after_days": -1}, {"rest_after_days": 1.5}, {"rest_after_days": "seven"},
        {"match_limit": -1}, {"match_threshold": math.nan}, {"match_threshold": math.inf}, {"list_capacity": 0},
        {"pin_capacity": -1}, {"max_characters": 0}, {"desk_limit": -1}, {"recent_days": -1},
        {"decay_enabled": "perhaps"}, {"decay_enabled": None}, {"rest_after_day": 7},
    ],
    ids=str,
)  # fmt: skip
def test_a_policy_that_cannot_be_is_refused(wrong: dict[str, object]):  # SPEC 6
    with pytest.raises(ValidationError):
        Policy(**wrong)


def test_a_policy_does_not_change_under_anybody_s_hands():
    with pytest.raises(ValidationError):
        Policy().rest_after_days = 3
