"""The tables. Times are seconds since 1970 UTC, so that every SQL database compares and groups them alike."""

from __future__ import annotations

from sqlalchemy import Column, Float, Integer, MetaData, String, Table, Text

SCHEMA_VERSION = 1

metadata = MetaData()

meta = Table(
    "meta", metadata, Column("key", String(64), primary_key=True), Column("value", String(255), nullable=False)
)

# One row per hour and key, not one per evaluation: ninety days stay small, and a history is one indexed read.
demand_hours = Table(
    "demand_hours",
    metadata,
    Column("cluster", String(255), primary_key=True),
    Column("hour_at", Integer, primary_key=True),
    Column("pool", String(255), primary_key=True),
    Column("kind", String(64), primary_key=True),
    Column("gpus_sum", Float, nullable=False),
    Column("samples", Integer, nullable=False),
)

evaluations = Table(
    "evaluations",
    metadata,
    Column("row", Integer, primary_key=True, autoincrement=True),
    Column("cluster", String(255), nullable=False, index=True),
    Column("id", String(64), nullable=False),
    Column("recorded_at", Integer, nullable=False, index=True),
    Column("taken_at", String(40), nullable=False),
    Column("installed_milligpu", Integer),
    Column("allocated_milligpu", Integer),
    Column("free_milligpu", Integer),
    Column("fragmentation_index", Float),
    Column("recommendations", Integer, nullable=False),
    Column("document", Text),  # the whole Evaluation; cleared on all but the newest rows
)

advice_seen = Table(
    "advice_seen",
    metadata,
    Column("cluster", String(255), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("first_seen_at", Integer, nullable=False),
    Column("last_seen_at", Integer, nullable=False),
)
