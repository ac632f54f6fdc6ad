"""cairn status."""
