"""cairn clean."""
