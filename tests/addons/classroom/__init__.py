"""Tests of bundles; a package, because its conftest is read by name."""
