// SPDX-License-Identifier: MIT
pragma solidity >=0.8.0 <0.9.0;

// Prints from within a test, through the address that forge listens at. One to three values; texts come first where
// there are three. A call costs nothing outside of forge: nobody is at that address.

library console {
    address private constant CONSOLE = 0x000000000000000000636F6e736F6c652e6c6f67;

    function _call(bytes memory data) private view {
        address console_ = CONSOLE;
        assembly ("memory-safe") {
            pop(staticcall(gas(), console_, add(data, 32), mload(data), 0, 0))
        }
    }

    /// Printing changes nothing that is seen, so pure functions may print: the cast says so to the compiler.
    function _send(bytes memory data) private pure {
        function(bytes memory) internal view calling = _call;
        function(bytes memory) internal pure printing;
        assembly ("memory-safe") {
            printing := calling
        }
        printing(data);
    }

    function log() internal pure {
        _send(abi.encodeWithSignature("log()"));
    }

    function log(string memory a) internal pure {
        _send(abi.encodeWithSignature("log(string)", a));
    }

    function log(uint256 a) internal pure {
        _send(abi.encodeWithSignature("log(uint256)", a));
    }

    function log(bool a) internal pure {
        _send(abi.encodeWithSignature("log(bool)", a));
    }

    function log(address a) internal pure {
        _send(abi.encodeWithSignature("log(address)", a));
    }

    function log(int256 a) internal pure {
        _send(abi.encodeWithSignature("log(int256)", a));
    }

    function log(string memory a, string memory b) internal pure {
        _send(abi.encodeWithSignature("log(string,string)", a, b));
    }

    function log(string memory a, uint256 b) internal pure {
        _send(abi.encodeWithSignature("log(string,uint256)", a, b));
    }

    function log(string memory a, bool b) internal pure {
        _send(abi.encodeWithSignature("log(string,bool)", a, b));
    }

    function log(string memory a, address b) internal pure {
        _send(abi.encodeWithSignature("log(string,address)", a, b));
    }

    function log(uint256 a, string memory b) internal pure {
        _send(abi.encodeWithSignature("log(uint256,string)", a, b));
    }

    function log(uint256 a, uint256 b) internal pure {
        _send(abi.encodeWithSignature("log(uint256,uint256)", a, b));
    }

    function log(uint256 a, bool b) internal pure {
        _send(abi.encodeWithSignature("log(uint256,bool)", a, b));
    }

    function log(uint256 a, address b) internal pure {
        _send(abi.encodeWithSignature("log(uint256,address)", a, b));
    }

    function log(bool a, string memory b) internal pure {
        _send(abi.encodeWithSignature("log(bool,string)", a, b));
    }

    function log(bool a, uint256 b) internal pure {
        _send(abi.encodeWithSignature("log(bool,uint256)", a, b));
    }

    function log(bool a, bool b) internal pure {
        _send(abi.encodeWithSignature("log(bool,bool)", a, b));
    }

    function log(bool a, address b) internal pure {
        _send(abi.encodeWithSignature("log(bool,address)", a, b));
    }

    function log(address a, string memory b) internal pure {
        _send(abi.encodeWithSignature("log(address,string)", a, b));
    }

    function log(address a, uint256 b) internal pure {
        _send(abi.encodeWithSignature("log(address,uint256)", a, b));
    }

    function log(address a, bool b) internal pure {
        _send(abi.encodeWithSignature("log(address,bool)", a, b));
    }

    function log(address a, address b) internal pure {
        _send(abi.encodeWithSignature("log(address,address)", a, b));
    }

    function log(string memory a, int256 b) internal pure {
        _send(abi.encodeWithSignature("log(string,int256)", a, b));
    }

    function log(string memory a, string memory b, string memory c) internal pure {
        _send(abi.encodeWithSignature("log(string,string,string)", a, b, c));
    }

    function log(string memory a, string memory b, uint256 c) internal pure {
        _send(abi.encodeWithSignature("log(string,string,uint256)", a, b, c));
    }

    function log(string memory a, string memory b, bool c) internal pure {
        _send(abi.encodeWithSignature("log(string,string,bool)", a, b, c));
    }

    function log(string memory a, string memory b, address c) internal pure {
        _send(abi.encodeWithSignature("log(string,string,address)", a, b, c));
    }

    function log(string memory a, uint256 b, string memory c) internal pure {
        _send(abi.encodeWithSignature("log(string,uint256,string)", a, b, c));
    }

    function log(string memory a, uint256 b, uint256 c) internal pure {
        _send(abi.encodeWithSignature("log(string,uint256,uint256)", a, b, c));
    }

    function log(string memory a, uint256 b, bool c) internal pure {
        _send(abi.encodeWithSignature("log(string,uint256,bool)", a, b, c));
    }

    function log(string memory a, uint256 b, address c) internal pure {
        _send(abi.encodeWithSignature("log(string,uint256,address)", a, b, c));
    }

    function log(string memory a, bool b, string memory c) internal pure {
        _send(abi.encodeWithSignature("log(string,bool,string)", a, b, c));
    }

    function log(string memory a, bool b, uint256 c) internal pure {
        _send(abi.encodeWithSignature("log(string,bool,uint256)", a, b, c));
    }

    function log(string memory a, bool b, bool c) internal pure {
        _send(abi.encodeWithSignature("log(string,bool,bool)", a, b, c));
    }

    function log(string memory a, bool b, address c) internal pure {
        _send(abi.encodeWithSignature("log(string,bool,address)", a, b, c));
    }

    function log(string memory a, address b, string memory c) internal pure {
        _send(abi.encodeWithSignature("log(string,address,string)", a, b, c));
    }

    function log(string memory a, address b, uint256 c) internal pure {
        _send(abi.encodeWithSignature("log(string,address,uint256)", a, b, c));
    }

    function log(string memory a, address b, bool c) internal pure {
        _send(abi.encodeWithSignature("log(string,address,bool)", a, b, c));
    }

    function log(string memory a, address b, address c) internal pure {
        _send(abi.encodeWithSignature("log(string,address,address)", a, b, c));
    }

    function logString(string memory a) internal pure {
        _send(abi.encodeWithSignature("log(string)", a));
    }

    function logUint(uint256 a) internal pure {
        _send(abi.encodeWithSignature("log(uint256)", a));
    }

    function logBool(bool a) internal pure {
        _send(abi.encodeWithSignature("log(bool)", a));
    }

    function logAddress(address a) internal pure {
        _send(abi.encodeWithSignature("log(address)", a));
    }

    function logInt(int256 a) internal pure {
        _send(abi.encodeWithSignature("log(int256)", a));
    }

    function logBytes(bytes memory a) internal pure {
        _send(abi.encodeWithSignature("log(bytes)", a));
    }

    function logBytes32(bytes32 a) internal pure {
        _send(abi.encodeWithSignature("log(bytes32)", a));
    }
}
