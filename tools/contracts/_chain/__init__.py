"""Chains, for every engine: nodes over JSON-RPC, the ABI, transactions, deployments."""
