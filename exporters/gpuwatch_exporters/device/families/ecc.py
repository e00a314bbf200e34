"""Memory errors and what the board did about them."""

from gpuwatch_exporters.device.family import counter, gauge

ENABLED = gauge("gpuwatch_gpu_ecc_enabled", "1 when errors of memory are corrected (ECC), 0 when that is switched off.")
PENDING = gauge("gpuwatch_gpu_ecc_pending_enabled", "ECC after the next reset: 1 enabled, 0 disabled.")
ERRORS = counter(
    "gpuwatch_gpu_ecc_errors_total",
    "Memory errors by severity (corrected, uncorrected): volatile since the driver was loaded, aggregate over the "
    "board's life.",
    "severity", "window",
)  # fmt: skip
LOCATION_ERRORS = counter(
    "gpuwatch_gpu_ecc_location_errors_total",
    "The same by the memory in which they were (device memory, caches, register file ...), read about once a minute.",
    "severity", "window", "location",
)  # fmt: skip
SRAM_ERRORS = counter(
    "gpuwatch_gpu_sram_ecc_errors_total",
    "Errors of on-chip memory by kind: corrected, uncorrected_parity, uncorrected_secded.",
    "kind", "window",
)  # fmt: skip
SRAM_UNIT_ERRORS = counter(
    "gpuwatch_gpu_sram_ecc_uncorrected_errors_total",
    "Uncorrected errors of on-chip memory over the board's life.",
    "unit",
)
SRAM_THRESHOLD = gauge(
    "gpuwatch_gpu_sram_ecc_threshold_exceeded", "1 when errors of on-chip memory are beyond what the vendor accepts."
)
REMAPPED_ROWS = gauge(
    "gpuwatch_gpu_remapped_rows", "Rows of device memory that spare rows stand in for, by the cause.", "cause"
)
INACTIVE_ROWS = gauge("gpuwatch_gpu_remapped_rows_inactive", "Remapped rows that are not in use any more.", "cause")
REMAP_PENDING = gauge("gpuwatch_gpu_row_remap_pending", "1 when a row is remapped only after the next reset.")
REMAP_FAILED = gauge(
    "gpuwatch_gpu_row_remap_failed", "1 when a row could not be remapped: the board needs replacement."
)
REMAP_BANKS = gauge(
    "gpuwatch_gpu_row_remap_banks",
    "Memory banks by how many of their spare rows are left: max, high ... none.",
    "spare",
)
REMAPPED_BANKS = gauge("gpuwatch_gpu_remapped_banks", "Banks that spare banks stand in for.", "state")
BANK_REMAP_PENDING = gauge("gpuwatch_gpu_bank_remap_pending", "1 when a bank is remapped only after the next reset.")
BANK_REMAP_GROUPS = gauge("gpuwatch_gpu_bank_remap_groups", "Groups of banks by their spares: max or none.", "spare")
RETIRED_PAGES = gauge("gpuwatch_gpu_retired_pages", "Pages of device memory that are not used any more.", "cause")
RETIREMENT_PENDING = gauge(
    "gpuwatch_gpu_page_retirement_pending", "1 when pages are retired only after the next reset."
)
CHANNEL_REPAIR = gauge("gpuwatch_gpu_channel_repair_pending", "1 when a memory channel is repaired at the next reset.")
TPC_REPAIR = gauge("gpuwatch_gpu_tpc_repair_pending", "1 when a processor cluster is repaired at the next reset.")
UNREPAIRABLE = gauge("gpuwatch_gpu_unrepairable_memory", "1 when device memory has a fault that cannot be repaired.")
