"""The requests that a server may send to its client: elicitation, sampling, roots."""
