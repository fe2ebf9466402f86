// SPDX-License-Identifier: MIT
pragma solidity >=0.8.0 <0.9.0;

// What a project's scripts are made from, so that a project that has some compiles. They are not run here.

import {console, console as console2} from "./console.sol";
import {Vm} from "./Vm.sol";

abstract contract Script {
    bool public IS_SCRIPT = true;

    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
}
