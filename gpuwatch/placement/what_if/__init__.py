"""What if this were asked for: where it would go, why nodes cannot take it, and the change that would make it fit.

`answer` is the way in. Asks about one state of a cluster; changes nothing and remembers only what no request changes.
"""
