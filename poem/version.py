"""The version, alone in a file so that the build can read it without importing poem."""

VERSION = "0.1.0"
