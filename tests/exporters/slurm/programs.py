"""Programs that print what Slurm's would, from the situation, in the schema of a release."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from tests.exporters.slurm import situation
from tests.exporters.slurm.situation import printed

UNREACHABLE = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


def write(folder: Path, name: str, body: str) -> None:
    """Makes a program of a shell's lines."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def slurm_programs(folder: Path, schema: str) -> None:
    """scontrol, squeue and sinfo as that release has them."""
    for call in situation.ROWS:
        (folder / f"{call}.json").write_text(printed(call, schema))
    (folder / "partitions.txt").write_text(_partition_lines())
    (folder / "reservations.txt").write_text(_reservation_lines())
    write(folder, "squeue", f'[ "$*" = "--all --local --json" ] && exec cat {folder}/jobs.json; exit 2')
    if schema == "v0.0.38":
        write(folder, "sinfo", f"exec cat {folder}/nodes.json")
        write(folder, "scontrol", _OLD_SCONTROL.format(folder=folder))
    else:
        write(folder, "sinfo", 'echo "{\\"sinfo\\": []}"')  # groups of nodes, of no use here
        write(folder, "scontrol", f'for last; do :; done; exec cat "{folder}/$last.json"')


_OLD_SCONTROL = """case "$*" in
*--json*) echo "scontrol: unrecognized option '--json'" >&2; exit 1 ;;
"show config") echo "Configuration data as of 2027-01-15T08:00:00"; echo "ClusterName             = north" ;;
"--all --oneliner show partitions") cat {folder}/partitions.txt ;;
"--all --oneliner show reservations") cat {folder}/reservations.txt ;;
*) exit 2 ;;
esac"""


def _partition_lines() -> str:
    limits = {2880: "2-00:00:00", -1: "UNLIMITED"}
    return "".join(
        f"PartitionName={each['name']} AllowGroups=ALL MaxTime={limits[each['max_time_limit']]} "
        f"MaxNodes={each['maximum_nodes_per_job'] if each['maximum_nodes_per_job'] > 0 else 'UNLIMITED'} "
        f"PriorityTier={each['priority_tier']} State={each['state']} TotalNodes={each['total_nodes']} TRES=cpu=64\n"
        for each in situation.PARTITIONS
    )


def _reservation_lines() -> str:
    return "".join(
        f"ReservationName={each['name']} StartTime={_local(each['start_time'])} EndTime={_local(each['end_time'])} "
        f"Duration=00:11:00 Nodes={each['node_list']} NodeCnt={each['node_count']} Flags={','.join(each['flags'])}\n"
        for each in situation.RESERVATIONS
    )


def _local(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
