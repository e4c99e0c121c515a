"""What `make_docs.py` makes the generated pages from: records, claims, pictures, executed blocks."""
