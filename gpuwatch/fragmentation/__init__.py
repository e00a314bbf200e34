"""Which free capacity the demand mix cannot take, and why. Pure; works on the columnar view only."""
