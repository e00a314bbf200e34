"""The source "podresources": one call to the kubelet per look."""

from __future__ import annotations

from pathlib import Path

from gpuwatch_exporters.device.frame import Frame
from gpuwatch_exporters.holders.holding import Told
from gpuwatch_exporters.holders.podresources.call import call
from gpuwatch_exporters.holders.podresources.pods import holdings

LIST = "/v1.PodResourcesLister/List"
MAX_BYTES = 64 * 2**20  # a node with 250 pods answers with some 100 KB


class PodResources:
    """Asks the kubelet at `socket`, each time for at most `seconds`."""

    def __init__(self, socket: Path, seconds: float) -> None:
        self._socket, self._seconds = socket, seconds

    def look(self, frame: Frame) -> Told:
        """Every container that holds a GPU, whatever the frame.

        Raises SourceOffError no_socket or not_installed, LookError.
        """
        return Told(holdings(call(str(self._socket), LIST, self._seconds, MAX_BYTES)))
