"""Its studies."""
