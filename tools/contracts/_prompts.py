"""Three prompts that guide an agent in writing, reviewing and deploying a contract with these tools."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from fastrpc import Server
else:
    from fastrpc.typing_forms import Annotated


def write_contract(
    purpose: Annotated[str, "What the contract is for"],
    name: Annotated[str, "The contract's name"] = "Contract",
) -> str:
    """Write and test a contract"""
    return f"""\
Write the Solidity contract {name}: {purpose}

1. Say in a few lines what it must never do: those are its invariants.
2. Write src/{name}.sol, for Solidity 0.8. Use custom errors with what is wrong in them, and events for
   each change of state. Whoever may change something is checked first; calls to others come last.
3. Write test/{name}.t.sol with `import {{Test}} from "forge-std/Test.sol";`: a test for each function,
   one for each error with vm.expectRevert, and fuzz tests, functions with parameters, for the
   invariants.
4. Call tachyon_compile, and mend until it has no errors and no warnings.
5. Call tachyon_test with both files, and mend the contract, not the test, unless the test is wrong.
6. Say what is tested, and what is not."""


def review_contract(
    source: Annotated[str, "The Solidity source, or what it is named in the conversation"],
) -> str:
    """Review a contract"""
    return f"""\
Review this contract as one who will be blamed for it:

{source}

Look for: who may call what; calls to others before the state is changed; arithmetic in unchecked
blocks; values of the caller in loops; tokens that return false or take a fee; signatures without nonce
or chain; timestamps and block hashes as chance; storage of proxies; what happens at zero, at the
largest value, and when it is called twice.

For each finding write a test that fails because of it and run it with tachyon_test. Report what a test
has shown, with the line, how bad it is and the change that mends it; report what you only suspect apart
from that."""


def deploy_safely(
    contract: Annotated[str, "The compiled contract, such as src/Counter.sol:Counter"],
    chain: Annotated[str, "A chain from tachyon_chain_list"] = "local",
) -> str:
    """Deploy a contract safely"""
    return f"""\
Deploy {contract} to {chain}:

1. tachyon_chain_list: is it the chain that is meant? On any other than the local one, stop and ask a
   person.
2. tachyon_test: all tests pass, with the sources that will be deployed. tachyon_compile them.
3. Choose an idempotency_key that says what and where, such as counter-v1-{chain}, and keep it: with it
   nothing is deployed twice, whatever is lost on the way. tachyon_registry_lookup: has it been deployed
   already?
4. tachyon_deploy with the key, constructor_args with large integers as text, and spend_cap_wei.
5. If the answer is lost or is a failure with retry, ask tachyon_registry_lookup first, then repeat with
   the same key.
6. Read the state back with tachyon_call, and try with tachyon_simulate what must revert.
7. Report address, transaction, key and what was read back."""


def attach(server: Server) -> None:
    for function in (write_contract, review_contract, deploy_safely):
        server.prompt(function)
