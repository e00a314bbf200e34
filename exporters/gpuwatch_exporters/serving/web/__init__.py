"""A small HTTP/1.1 server: one thread, no thread per connection, so that slow clients cost a descriptor and no more.

Knows nothing of exporters: it reads requests, asks a handler, writes answers, and keeps limits of size, time, number.
"""
