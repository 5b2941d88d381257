"""The resources, one module or package each; each has `routes`."""
