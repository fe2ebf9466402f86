"""Chains as every engine meets them: nodes over JSON-RPC, the ABI, transactions, what is to be deployed."""
