"""Fields whose number depends on the driver.

NVIDIA gave the times of three throttle reasons the numbers from 251 on in drivers 575 and early 580, where 570 had the
smoothing of power, and exchanged the two again within 580. Asked by today's number, such a driver answers with another
quantity and calls it a success. Learned by comparing the constants of nvidia-ml-py from 12.560 to 13.615.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuwatch_exporters.nvml.readings import Field

# Today's numbers, written out: the constants of nvidia-ml-py moved with the drivers.
SMOOTHING = range(251, 269)
THROTTLE_TIMES = range(269, 274)
_VERSION = re.compile(r"(\d+)\.(\d+)")


def for_driver(table: Iterable[Field], driver_version: str) -> tuple[Field, ...]:
    """The fields by the numbers that this driver has for them; what it has no (known) number for is left out.

    driver_version is the driver's own text, "580.95.05"; an unknown one leaves out all that ever moved.
    """
    numbers = _numbers(driver_version)
    out = []
    for each in table:
        moved = each.id in SMOOTHING or each.id in THROTTLE_TIMES
        id_ = numbers.get(each.id) if moved else each.id
        if id_ is not None:
            out.append(each._replace(id=id_))
    return tuple(out)


def _numbers(driver_version: str) -> dict[int, int]:
    """Today's number -> this driver's."""
    found = _VERSION.match(driver_version)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version >= (580, 82):
        return {id_: id_ for id_ in (*SMOOTHING, *THROTTLE_TIMES)}
    if version > (580, 65):
        return {}  # between the two headers that are known: which of them holds is not
    if version >= (575, 0):
        return {**{id_: id_ + 5 for id_ in SMOOTHING}, **{id_: id_ - 18 for id_ in THROTTLE_TIMES}}
    if version >= (570, 0):
        return {id_: id_ for id_ in SMOOTHING}
    return {}  # older ones have neither
