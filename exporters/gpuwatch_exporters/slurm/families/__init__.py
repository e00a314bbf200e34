"""The metrics of the Slurm exporter, by topic."""
