"""The embedded database as its users see it: one server for all who open a data directory."""

from __future__ import annotations

import psycopg
import redis


def test_a_fresh_database_stands_for_each_test(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT current_database() LIKE 'test_%'").fetchone() == (True,)


def test_redis_answers(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
