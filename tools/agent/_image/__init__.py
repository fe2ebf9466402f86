"""Reading images: the file, the pool of decoding processes, and the program that they run."""
