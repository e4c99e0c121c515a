"""One folder a paper; each uses the shared rooms and never another paper's."""
