"""Files and environment of a root, read once into frozen values. An unknown key is a ConfigError: `file: key: why`."""
