"""`python -m gpuwatch_dashboards build|rules [--check]`: writes the generated files, or says which are stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.errors import GpuwatchError


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 written or up to date, 1 out of date or failed, 2 wrong usage (by argparse)."""
    parser = argparse.ArgumentParser(prog="python -m gpuwatch_dashboards", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="the Grafana dashboards")
    rules = commands.add_parser("rules", help="the recording and alerting rules")
    for command in (build, rules):
        command.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
        command.add_argument("--output", type=Path, help="another folder than the packaged one")
    rules.add_argument("--runbook-base", help="where you publish docs/alerts, e.g. https://wiki.example.org/alerts")
    rules.add_argument("--grafana-url", default="", help="your Grafana, e.g. https://grafana.example.org")
    arguments = parser.parse_args(argv)
    try:
        return _run(arguments)
    except GpuwatchError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    from gpuwatch_dashboards.rules import files

    if arguments.command == "rules":
        from gpuwatch_dashboards.thresholds import alert_rules_folder

        base = arguments.runbook_base or files.DEFAULT_RUNBOOK_BASE
        wanted = files.rule_files(runbook_base=base, grafana_url=arguments.grafana_url)
        folder = arguments.output or alert_rules_folder() / "rules"
    else:
        from gpuwatch_dashboards.boards import board_files

        wanted = board_files()
        folder = arguments.output or Path(__file__).parent / "generated"
    if arguments.check:
        found = files.differences(wanted, folder)
        print("\n".join(found) or f"{folder} is up to date", file=sys.stderr)
        return 1 if found else 0
    files.write(wanted, folder)
    print(f"wrote {len(wanted)} files to {folder}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
