// SPDX-License-Identifier: MIT
pragma solidity >=0.8.0 <0.9.0;

// The older name of the same library.

import {console as console2} from "./console.sol";
