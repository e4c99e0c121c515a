"""Its theory."""
