"""What the daemon remembers: demand per hour, evaluations, when advice was first given."""

from gpuwatch.store.errors import StoreError
from gpuwatch.store.store import Store, open_store

__all__ = ["Store", "StoreError", "open_store"]
