"""Reading images: the file, the pool of processes that decode, and what runs in them."""
