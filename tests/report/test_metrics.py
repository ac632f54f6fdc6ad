"""The figures for monitoring, as a parser of OpenMetrics takes them."""

from pathlib import Path
from typing import Dict, Tuple

import pytest

from cairn.job_log import read_log
from cairn.reporting.history import history_of
from cairn.reporting.metrics import FAMILIES, text_of
from logs import HOSTILE, Log, eventful

parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="python3-prometheus-client is not here")

Samples = Dict[Tuple[str, Tuple[Tuple[str, str], ...]], float]


def samples_of(text: str) -> Samples:
    families = list(parser.text_string_to_metric_families(text))
    assert [family.name for family in families] == [family.name for family in FAMILIES]
    assert all(family.documentation and family.type in ("counter", "gauge") for family in families)
    assert {family.name: family.unit for family in families if family.unit} == {
        family.name: family.unit for family in FAMILIES if family.unit}
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families for sample in family.samples}


def test_every_figure_is_there_once_for_each_log(tmp_path: Path) -> None:
    read = read_log(eventful().write(tmp_path) / ".cairn" / "log.json")
    made = [history_of(name, read.entries, 2) for name in ("one", "two")]
    samples = samples_of(text_of(made))

    def value(name: str, **labels: str) -> float:
        return samples[name, tuple(sorted({"log": "two", **labels}.items()))]

    assert value("cairn_runs_begun_total") == 3
    assert value("cairn_runs_ended_total", end="died") == 2
    assert value("cairn_runs_ended_total", end="halted") == 1
    assert value("cairn_node_failures_total") == 1
    assert value("cairn_operations_total", operation="checkpoint", result="success") == 12
    assert value("cairn_operations_total", operation="checkpoint", result="failure") == 3
    assert value("cairn_operations_total", operation="rebuild", result="success") == 2
    assert value("cairn_transfer_bytes_total", transfer="write") == 12 * 2**30
    assert value("cairn_phase_seconds_total", phase="flush") == pytest.approx(6 * 4 + 3)
    assert value("cairn_flushed_datasets_total") + value("cairn_unflushed_datasets") == 12
    assert value("cairn_unflushed_state_seconds", state="written") == made[0].unflushed_seconds["written"] > 0
    assert value("cairn_damaged_lines_total") == 2
    assert value("cairn_newest_dataset") == 12
    assert value("cairn_last_sign_of_life_timestamp_seconds") == pytest.approx(made[0].last_s())
    assert len(samples) == 2 * sum("two" in dict(labels).values() for _, labels in samples)


def test_a_log_without_anything_has_no_times(tmp_path: Path) -> None:
    samples = samples_of(text_of([history_of("here", [])]))
    assert samples["cairn_runs_begun_total", (("log", "here"),)] == 0
    assert not any("timestamp" in name for name, _ in samples)


def test_names_are_escaped() -> None:
    name = HOSTILE + "\\n\\"
    assert any(dict(labels)["log"] == name for _, labels in samples_of(text_of([history_of(name, [])])))
    log = Log()
    assert log.lines == []
