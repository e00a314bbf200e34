"""What the daemon remembers: demand per hour, evaluations, when advice was first given."""

from gpuwatch.store.errors import StoreError, StoreGoneError
from gpuwatch.store.store import Store, checked_url, open_store

__all__ = ["Store", "StoreError", "StoreGoneError", "checked_url", "open_store"]
