"""What theory says of networks with diagonal weights, as functions: one file per law."""
