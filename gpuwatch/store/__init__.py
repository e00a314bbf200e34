"""What the daemon remembers: demand per hour, evaluations, when advice was first given."""

from gpuwatch.store.errors import StoreError, StoreGoneError
from gpuwatch.store.store import Store, open_store

__all__ = ["Store", "StoreError", "StoreGoneError", "open_store"]
