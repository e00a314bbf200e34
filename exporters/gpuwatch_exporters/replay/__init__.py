"""Serves a cluster that is not there: the pages that its exporters would print, so that the whole chain runs on it."""

HELP = "serve a trace, a snapshot or the generated cluster as dcgm-exporter and kube-state-metrics would"
