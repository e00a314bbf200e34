"""What Slurm knows of the cluster, as aggregates: nodes, GPUs, partitions, jobs, tenants and why jobs wait."""

HELP = "serve nodes, GPUs, partitions, jobs and waiting reasons of a Slurm cluster"
