"""Reservations, known ahead of their start."""

from __future__ import annotations

from gpuwatch_exporters.slurm.family import gauge

ACTIVE = gauge("reservation_active", "1 between the start and the end of the reservation.", "reservation")
NODES = gauge("reservation_nodes", "Nodes of the reservation.", "reservation")
GPUS = gauge("reservation_gpus", "GPUs on the reservation's nodes.", "reservation", "gpu_type")
START = gauge("reservation_start_timestamp_seconds", "Unix time of its start.", "reservation")
END = gauge("reservation_end_timestamp_seconds", "Unix time of its end.", "reservation")
MAINTENANCE = gauge("reservation_maintenance", "1 where the reservation is for maintenance.", "reservation")
