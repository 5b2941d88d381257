"""``/page/``: what our own page shows beyond the other resources. It may change with the page."""
