"""What authors declare: tools, resources, prompts, completions, and the registries that hold them.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* what all functions that serve requests have in common: `handler.py`; what a server offers: `registry.py`,
  in pages: `protocol/pagination.py`
* which types options of servers and decorators have: `option_types.py`
* when annotations have to be defined: `Registries.settle` in `registry.py`; which entries are left out of a
  list because they cannot be written: `engine/listing.py`
* which URI a resource of a mounted server has in the outer server, and which clients are notified of its
  changes: `addresses.py`; `places_of` in `mounting.py`
"""
