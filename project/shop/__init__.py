"""The shop: orders whose stock, charge and receipt are jobs."""
