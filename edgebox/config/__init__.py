"""The configuration file: TOML in, typed parameters out, all errors at once."""
