"""cairn doctor."""
