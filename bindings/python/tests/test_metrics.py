"""The metrics, read by the parsers of prometheus_client, which are not ours."""

from __future__ import annotations

from typing import Any

import pytest

import lithify

openmetrics: Any = pytest.importorskip("prometheus_client.openmetrics.parser")
prometheus: Any = pytest.importorskip("prometheus_client.parser")

# What a label has to escape.
NAME = 'chalk "and" \\ flint'

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def worked(rocks: lithify.Db) -> lithify.Db:
    """Two families, with rows in tables and in memory, and reads of them."""
    other = rocks.column_family(NAME, create=True)
    other.put(b"a", b"1" * 1000)
    rocks.flush()
    rocks.compact_range()
    rocks.wait_for_compaction()
    assert rocks.get(b"key-3") == b"value-3" and list(other)
    return rocks


def samples(families: list[Any]) -> Samples:
    found: Samples = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def test_open_metrics_is_read_by_a_strict_parser(worked: lithify.Db) -> None:
    families = list(openmetrics.text_string_to_metric_families(worked.open_metrics()))
    types = {family.name: family.type for family in families}
    assert len(types) == len(families) > 50
    assert types["lithify_puts"] == "counter" and types["lithify_build"] == "info"
    assert set(types.values()) == {"counter", "gauge", "info"}
    assert all(family.documentation for family in families)
    units = {family.name: family.unit for family in families if family.unit}
    assert set(units.values()) == {"bytes", "seconds"}
    assert all(name.endswith(unit) for name, unit in units.items())
    found = samples(families)
    puts = {
        dict(labels)["family"]: value
        for (name, labels), value in found.items()
        if name == "lithify_puts_total"
    }
    assert puts == {"default": 10, NAME: 1}


def test_both_texts_have_the_same_samples(worked: lithify.Db) -> None:
    ours = samples(list(openmetrics.text_string_to_metric_families(worked.open_metrics())))
    theirs = samples(list(prometheus.text_string_to_metric_families(worked.metrics())))
    assert ours.keys() == theirs.keys()
    # Only what calls count stands still between the two.
    calls = {"lithify_puts_total", "lithify_gets_total", "lithify_nexts_total"}
    counted = {key for key in ours if key[0] in calls}
    assert {name for name, _ in counted} == calls
    assert {key: ours[key] for key in counted} == {key: theirs[key] for key in counted}
