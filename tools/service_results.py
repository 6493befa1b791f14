"""Write docs/studies/service.txt from the results of ``make bench NAME=service`` and ``make kill NAME=service``."""

import json
from typing import Any

from tools.service_process import ROOT

STUDIES = ROOT / "docs" / "studies"
_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def read(name: str) -> list[dict[str, Any]]:
    """Return the results of a file; none if it is not there."""
    path = STUDIES / name
    return json.loads(path.read_text()) if path.exists() else []


def table(rows: list[list[str]]) -> str:
    """Return a table of reStructuredText whose first row is the header."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)


def rates(results: list[dict[str, Any]]) -> str:
    """Return the paragraph and the table of rates."""
    header = [
        "store",
        "clients",
        "rows per request",
        "requests per s",
        "rows per s",
        "p50",
        "p99",
        "acknowledged",
        "stored",
    ]
    rows = [header]
    for result in results:
        rows.append(
            [
                _NAMES[result["store"]],
                str(result["clients"]),
                str(result["rows_per_request"]),
                f"{result['requests_per_second']:.0f}",
                f"{result['rows_per_second']:,.0f}",
                f"{result['p50_ms']:.0f} ms",
                f"{result['p99_ms']:.0f} ms",
                f"{result['rows_acknowledged']:,} rows",
                f"{result['rows_stored']:,} rows",
            ]
        )
    seconds = sorted({f"{result['seconds']:g}" for result in results})
    load = sorted({result["load_average_before"] for result in results})
    text = (
        f"Observations from clients on the same machine, for {' and '.join(seconds)} seconds "
        "(``make bench NAME=service``). Two cores, which the service shared with the clients and with other programs: "
        f"the load average at the end was {load[0]:g} to {load[-1]:g}. Rows acknowledged to clients are compared with "
        "rows in the store."
    )
    return f"{text}\n\n{table(rows)}"


def slow(results: list[dict[str, Any]]) -> str:
    """Return the sentences on slow clients."""
    lines = []
    for result in results:
        alone, beside = result["without"], result["with"]
        slow, asked = result["slow_clients"], 5 * result["slow_clients"]
        lines.append(
            f"{slow:,} further connections that send nothing, half a request or an endless body, or ask for {asked:,} "
            f"histories at once and do not read the answers: p99 of the others {beside['p99_ms']:.0f} ms "
            f"({alone['p99_ms']:.0f} ms without them), {beside['requests_per_second']:.0f} requests per second "
            f"({alone['requests_per_second']:.0f})."
        )
    return "\n\n".join(lines)


def memory(results: list[dict[str, Any]]) -> str:
    """Return the sentences on memory."""
    lines = []
    for result in results:
        values = result["memory_mb"]
        middle = len(values) // 2
        lines.append(
            f"Memory of the service over {result['requests']:,} requests of all kinds: {values[0]:.0f} MB at the "
            f"start, {values[middle]:.0f} MB after half of them, {values[-1]:.0f} MB at the end."
        )
    return "\n\n".join(lines)


def kills(results: list[dict[str, Any]]) -> str:
    """Return the paragraph and the table of kills, added up per store."""
    columns = {
        "kills": "kills",
        "batches_acknowledged": "batches acknowledged",
        "batches_sent_again": "sent again, known",
        "batches_lost": "lost",
        "batches_counted_twice": "counted twice",
        "outbox_entries": "alarms in the outbox",
        "entries_received": "received",
        "entries_received_again": "received again",
        "entries_lost": "not received",
    }
    rows = [["store", *columns.values()]]
    for store in dict.fromkeys(result["store"] for result in results):
        runs = [result for result in results if result["store"] == store]
        rows.append([_NAMES[store], *(f"{sum(result[name] for result in runs):,}" for name in columns)])
    text = (
        "The service killed (SIGKILL) under load and started again (``make kill NAME=service``). Clients repeat a "
        "batch until it is acknowledged. The receiver refuses every seventh request and deduplicates by id."
    )
    return f"{text}\n\n{table(rows)}"


def main() -> None:
    """Write the page."""
    load, killed = read("service_load.json"), read("service_kill.json")
    parts = []
    for kind, write in (("rate", rates), ("slow", slow), ("memory", memory)):
        measured = [result for result in load if result["measurement"] == kind]
        if measured:
            parts.append(write(measured))
    if killed:
        parts.append(kills(killed))
    (STUDIES / "service.txt").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
