"""The commands of `edgebox`: thin, each reads flags, calls and prints."""
