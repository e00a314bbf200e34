"""Who holds a GPU: Kubernetes pods, Slurm jobs, else the owners of the processes on it.

Every source is asked on a thread of its own, because a kubelet, a dead process or a directory of users may take any
time; a cycle waits for them only for a moment and goes on with what was told last, whose age is exported.
"""

from gpuwatch_exporters.holders.holders import Holders
from gpuwatch_exporters.holders.settings import HolderSettings, add_holder_arguments, holder_settings

__all__ = ["HolderSettings", "Holders", "add_holder_arguments", "holder_settings"]
