"""Slurm jobs and their devices, as the node itself knows them: cgroups first, then what a prolog wrote, then the
environment of the job's processes. Nobody is asked over the network.
"""
