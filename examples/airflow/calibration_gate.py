"""A daily Airflow DAG: count yesterday's scored rows, evaluate them, and recalibrate if the model is miscalibrated.

The tasks pass paths, not rows: a table of counts, a report and a calibrator, in the folder CALIBRATION_FOLDER.

    pip install "calibrant[sklearn,files,report]" apache-airflow
"""

import os
from pathlib import Path

import pendulum
from airflow.sdk import dag, get_current_context, task

import calibrant as cb

FOLDER = Path(os.environ.get("CALIBRATION_FOLDER", "calibration"))
SCORED = os.environ.get("SCORED_ROWS", "scored/{day}.parquet")  # columns outcome and score


@task
def count() -> str:
    """Count the rows of the day into a table, which is small however many rows there are."""
    day = get_current_context()["ds"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    table = cb.scan(SCORED.format(day=day), y="outcome", p="score", resolution=2**-20)
    path = FOLDER / f"{day}.table.parquet"
    table.to_parquet(path)
    return str(path)


@task
def evaluate(table: str) -> str:
    """Evaluate the table, and write the report beside it."""
    result = cb.evaluate(cb.ScoreTable.from_parquet(table), n_resamples=199)
    result.to_html(Path(table).with_suffix(".html"))
    return result.verdict


@task.branch
def decide(verdict: str) -> str:
    """Recalibrate on miscalibration only: an inconclusive day needs more rows, not another map."""
    return "recalibrate" if verdict == "miscalibrated" else "keep"


@task
def recalibrate(table: str) -> str:
    """Fit a calibrator to the day; the rows of the next day show whether it holds."""
    calibrator = cb.Beta().fit(cb.ScoreTable.from_parquet(table))
    path = Path(table).with_name("calibrator.json")
    cb.save(calibrator, path)
    return str(path)


@task
def keep() -> None:
    """Leave the scores as they are."""


@dag(schedule="@daily", start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False, tags=["calibration"])
def calibration_gate() -> None:
    """Count, evaluate, and recalibrate if needed."""
    table = count()
    decide(evaluate(table)) >> [recalibrate(table), keep()]


gate = calibration_gate()

if __name__ == "__main__":
    gate.test()
