// SPDX-License-Identifier: MIT
pragma solidity >=0.8.0 <0.9.0;

// What an invariant test is to call: forge asks for these lists before it begins.

abstract contract StdInvariant {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    address[] private _targets;
    address[] private _excluded;
    address[] private _senders;
    address[] private _excludedSenders;
    FuzzSelector[] private _selectors;
    FuzzSelector[] private _excludedSelectors;

    function targetContract(address target) internal {
        _targets.push(target);
    }

    function excludeContract(address target) internal {
        _excluded.push(target);
    }

    function targetSender(address sender) internal {
        _senders.push(sender);
    }

    function excludeSender(address sender) internal {
        _excludedSenders.push(sender);
    }

    function targetSelector(FuzzSelector memory selector) internal {
        _selectors.push(selector);
    }

    function excludeSelector(FuzzSelector memory selector) internal {
        _excludedSelectors.push(selector);
    }

    function targetContracts() public view returns (address[] memory) {
        return _targets;
    }

    function excludeContracts() public view returns (address[] memory) {
        return _excluded;
    }

    function targetSenders() public view returns (address[] memory) {
        return _senders;
    }

    function excludeSenders() public view returns (address[] memory) {
        return _excludedSenders;
    }

    function targetSelectors() public view returns (FuzzSelector[] memory) {
        return _selectors;
    }

    function excludeSelectors() public view returns (FuzzSelector[] memory) {
        return _excludedSelectors;
    }
}
