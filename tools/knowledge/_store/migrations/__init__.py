"""The migrations of the store, run by `fastrpc.storage`."""
