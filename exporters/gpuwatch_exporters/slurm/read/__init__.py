"""From what Slurm prints to records: one reader for each kind of row, whatever the schema's version."""
