"""The web configuration file that exporters share: TLS, client certificates, headers, passwords. Read on change."""
