"""The command line: reads options, asks wiring for an evaluation, hands it to a renderer. Decides nothing else."""
