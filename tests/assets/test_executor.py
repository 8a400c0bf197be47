"""Who executes the steps of a run: the run's own process, unless the settings say Celery."""

from pathlib import Path

import dagster as dg

from assets.archive import fetch
from assets.current import fold
from assets.definitions import defs
from assets.executor import FILE, PRIORITY, QUEUE, celery_config
from assets.published import published

DISTRIBUTED = Path(__file__).parents[2] / "deploy" / "distributed"


def test_without_a_word_of_it_a_run_executes_its_steps_itself() -> None:
    # Celery is not installed where these tests run: it would not load.
    assert defs.executor is dg.in_process_executor
    assert "lost_workers" not in {sensor.name for sensor in defs.sensors or ()}


def test_reading_and_folding_have_queues_of_their_own() -> None:
    config = celery_config()["config_source"]
    assert fetch.op.tags[QUEUE] == "fetch"
    assert not {QUEUE} & (fold.op.tags.keys() | published.op.tags.keys())
    assert config["task_default_queue"] == "fold"


def test_what_waits_to_be_folded_is_folded_before_a_publication() -> None:
    assert published.op.tags[PRIORITY] == "9"
    assert not {PRIORITY} & (fold.op.tags.keys() | fetch.op.tags.keys())


def test_no_file_that_is_shipped_holds_the_address_of_a_server() -> None:
    for file in (FILE, DISTRIBUTED / "dagster.yaml"):
        lines = [line.split("#")[0] for line in file.read_text().splitlines()]
        assert "://" not in "\n".join(lines), file
