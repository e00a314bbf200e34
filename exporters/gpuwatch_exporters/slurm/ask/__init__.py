"""How Slurm is asked: its commands or slurmrestd, each call with a deadline, at its own pace, its faults counted."""
