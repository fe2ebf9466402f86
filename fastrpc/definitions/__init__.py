"""What authors declare: tools, resources, prompts, completions, and the registries that hold them."""
