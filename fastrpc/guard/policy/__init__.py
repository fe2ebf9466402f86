"""The policy: which callers may call what, at which risk and how often.

* `file` reads a ``guard.toml`` or an ``mcp-server.json`` (`sophon`) as a `GuardConfig` (`config`);
  `toml_file` and `sections` find the line of each mistake, `references` resolves the secrets that it names.
* `decisions`: for each class of callers and each tool, one `Decision`, made when the policy is loaded.
* `rules`: conditions over caller, tool and arguments (`fastrpc.guard.cel`).

Importing this package imports none of them.
"""
