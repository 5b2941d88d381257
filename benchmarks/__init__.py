"""Benchmarks: jobqueue beside what it is built on, in one run. See README.md."""
