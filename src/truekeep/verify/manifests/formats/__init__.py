"""The part of TOML, JSON, YAML, XML and INI that manifests use, each entry with its line. No general parsers."""
