"""Ways in and out: each moves bytes between a peer and the connection that it is handed."""
