"""Tests that kill or interrupt processes at random moments: ``python -m tools.kill`` lists them or runs one by name."""

import sys

from tools.programs import Program, main

PROGRAMS = {
    "monitor": Program("kill", "tools.kill.monitor", ("docs/studies/monitor_kill_*.json",), "20 minutes"),
    "service": Program(
        "kill", "tools.kill.service", ("docs/studies/service_kill.json", "docs/studies/service.txt"), "an hour"
    ),
    "interrupts": Program("kill", "tools.kill.interrupts", ("docs/studies/interrupts.csv",), "15 minutes"),
}

if __name__ == "__main__":
    sys.exit(main("tools.kill", PROGRAMS))
