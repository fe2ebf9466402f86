// SPDX-License-Identifier: MIT
pragma solidity >=0.8.0 <0.9.0;

// What tests are written on: assertions, which forge itself makes and words, and helpers around the cheat codes.
// A test pays for the functions that it uses, and for reading these files: a few hundredths of a second.

import {StdInvariant} from "./StdInvariant.sol";
import {Vm} from "./Vm.sol";
import {console, console as console2} from "./console.sol";

interface IBalances {
    function balanceOf(address account) external view returns (uint256);
}

/// The reverts of the compiler's own checks, for `vm.expectRevert`.
library stdError {
    bytes internal constant assertionError = abi.encodeWithSignature("Panic(uint256)", 0x1);
    bytes internal constant arithmeticError = abi.encodeWithSignature("Panic(uint256)", 0x11);
    bytes internal constant divisionError = abi.encodeWithSignature("Panic(uint256)", 0x12);
    bytes internal constant enumConversionError = abi.encodeWithSignature("Panic(uint256)", 0x21);
    bytes internal constant encodeStorageError = abi.encodeWithSignature("Panic(uint256)", 0x22);
    bytes internal constant popError = abi.encodeWithSignature("Panic(uint256)", 0x31);
    bytes internal constant indexOOBError = abi.encodeWithSignature("Panic(uint256)", 0x32);
    bytes internal constant memOverflowError = abi.encodeWithSignature("Panic(uint256)", 0x41);
    bytes internal constant zeroVarError = abi.encodeWithSignature("Panic(uint256)", 0x51);
}

abstract contract Assertions {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function fail() internal pure {
        vm.assertTrue(false);
    }

    function fail(string memory err) internal pure {
        vm.assertTrue(false, err);
    }

    function assertTrue(bool condition) internal pure {
        vm.assertTrue(condition);
    }

    function assertTrue(bool condition, string memory err) internal pure {
        vm.assertTrue(condition, err);
    }

    function assertFalse(bool condition) internal pure {
        vm.assertFalse(condition);
    }

    function assertFalse(bool condition, string memory err) internal pure {
        vm.assertFalse(condition, err);
    }

    function assertEq(uint256 left, uint256 right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(uint256 left, uint256 right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(int256 left, int256 right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(int256 left, int256 right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(address left, address right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(address left, address right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(bool left, bool right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(bool left, bool right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(bytes32 left, bytes32 right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(bytes32 left, bytes32 right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(string memory left, string memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(string memory left, string memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(bytes memory left, bytes memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(bytes memory left, bytes memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(uint256[] memory left, uint256[] memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(uint256[] memory left, uint256[] memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(int256[] memory left, int256[] memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(int256[] memory left, int256[] memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(address[] memory left, address[] memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(address[] memory left, address[] memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(bool[] memory left, bool[] memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(bool[] memory left, bool[] memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(bytes32[] memory left, bytes32[] memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(bytes32[] memory left, bytes32[] memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(string[] memory left, string[] memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(string[] memory left, string[] memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertEq(bytes[] memory left, bytes[] memory right) internal pure {
        vm.assertEq(left, right);
    }

    function assertEq(bytes[] memory left, bytes[] memory right, string memory err) internal pure {
        vm.assertEq(left, right, err);
    }

    function assertNotEq(uint256 left, uint256 right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(uint256 left, uint256 right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(int256 left, int256 right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(int256 left, int256 right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(address left, address right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(address left, address right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(bool left, bool right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(bool left, bool right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(bytes32 left, bytes32 right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(bytes32 left, bytes32 right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(string memory left, string memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(string memory left, string memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(bytes memory left, bytes memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(bytes memory left, bytes memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(uint256[] memory left, uint256[] memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(uint256[] memory left, uint256[] memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(int256[] memory left, int256[] memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(int256[] memory left, int256[] memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(address[] memory left, address[] memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(address[] memory left, address[] memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(bool[] memory left, bool[] memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(bool[] memory left, bool[] memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(bytes32[] memory left, bytes32[] memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(bytes32[] memory left, bytes32[] memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(string[] memory left, string[] memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(string[] memory left, string[] memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertNotEq(bytes[] memory left, bytes[] memory right) internal pure {
        vm.assertNotEq(left, right);
    }

    function assertNotEq(bytes[] memory left, bytes[] memory right, string memory err) internal pure {
        vm.assertNotEq(left, right, err);
    }

    function assertGt(uint256 left, uint256 right) internal pure {
        vm.assertGt(left, right);
    }

    function assertGt(uint256 left, uint256 right, string memory err) internal pure {
        vm.assertGt(left, right, err);
    }

    function assertGt(int256 left, int256 right) internal pure {
        vm.assertGt(left, right);
    }

    function assertGt(int256 left, int256 right, string memory err) internal pure {
        vm.assertGt(left, right, err);
    }

    function assertGe(uint256 left, uint256 right) internal pure {
        vm.assertGe(left, right);
    }

    function assertGe(uint256 left, uint256 right, string memory err) internal pure {
        vm.assertGe(left, right, err);
    }

    function assertGe(int256 left, int256 right) internal pure {
        vm.assertGe(left, right);
    }

    function assertGe(int256 left, int256 right, string memory err) internal pure {
        vm.assertGe(left, right, err);
    }

    function assertLt(uint256 left, uint256 right) internal pure {
        vm.assertLt(left, right);
    }

    function assertLt(uint256 left, uint256 right, string memory err) internal pure {
        vm.assertLt(left, right, err);
    }

    function assertLt(int256 left, int256 right) internal pure {
        vm.assertLt(left, right);
    }

    function assertLt(int256 left, int256 right, string memory err) internal pure {
        vm.assertLt(left, right, err);
    }

    function assertLe(uint256 left, uint256 right) internal pure {
        vm.assertLe(left, right);
    }

    function assertLe(uint256 left, uint256 right, string memory err) internal pure {
        vm.assertLe(left, right, err);
    }

    function assertLe(int256 left, int256 right) internal pure {
        vm.assertLe(left, right);
    }

    function assertLe(int256 left, int256 right, string memory err) internal pure {
        vm.assertLe(left, right, err);
    }

    function assertApproxEqAbs(uint256 left, uint256 right, uint256 maxDelta) internal pure {
        vm.assertApproxEqAbs(left, right, maxDelta);
    }

    function assertApproxEqAbs(uint256 left, uint256 right, uint256 maxDelta, string memory err) internal pure {
        vm.assertApproxEqAbs(left, right, maxDelta, err);
    }

    function assertApproxEqAbs(int256 left, int256 right, uint256 maxDelta) internal pure {
        vm.assertApproxEqAbs(left, right, maxDelta);
    }

    function assertApproxEqAbs(int256 left, int256 right, uint256 maxDelta, string memory err) internal pure {
        vm.assertApproxEqAbs(left, right, maxDelta, err);
    }

    function assertApproxEqRel(uint256 left, uint256 right, uint256 maxPercent) internal pure {
        vm.assertApproxEqRel(left, right, maxPercent);
    }

    function assertApproxEqRel(uint256 left, uint256 right, uint256 maxPercent, string memory err) internal pure {
        vm.assertApproxEqRel(left, right, maxPercent, err);
    }

    function assertApproxEqRel(int256 left, int256 right, uint256 maxPercent) internal pure {
        vm.assertApproxEqRel(left, right, maxPercent);
    }

    function assertApproxEqRel(int256 left, int256 right, uint256 maxPercent, string memory err) internal pure {
        vm.assertApproxEqRel(left, right, maxPercent, err);
    }
}

abstract contract Test is Assertions, StdInvariant {
    uint256 private constant HOAX_BALANCE = 1 << 128;

    /// A value of the range, for inputs that are any number; `assume` would throw nearly all of them away.
    function bound(uint256 x, uint256 min, uint256 max) internal pure virtual returns (uint256) {
        require(min <= max, "bound(uint256,uint256,uint256): max is less than min");
        if (x >= min && x <= max) return x;
        return min + (x % (max - min + 1)); // not 0: a range of all numbers has been left above
    }

    function bound(int256 x, int256 min, int256 max) internal pure virtual returns (int256) {
        require(min <= max, "bound(int256,int256,int256): max is less than min");
        return _shifted(bound(_shifted(x), _shifted(min), _shifted(max)));
    }

    function makeAddr(string memory name) internal virtual returns (address made) {
        (made,) = makeAddrAndKey(name);
    }

    function makeAddrAndKey(string memory name) internal virtual returns (address made, uint256 privateKey) {
        privateKey = uint256(keccak256(abi.encodePacked(name)));
        made = vm.addr(privateKey);
        vm.label(made, name);
    }

    function hoax(address sender) internal virtual {
        hoax(sender, HOAX_BALANCE);
    }

    function hoax(address sender, uint256 balance) internal virtual {
        vm.deal(sender, balance);
        vm.prank(sender);
    }

    function hoax(address sender, address origin) internal virtual {
        hoax(sender, origin, HOAX_BALANCE);
    }

    function hoax(address sender, address origin, uint256 balance) internal virtual {
        vm.deal(sender, balance);
        vm.prank(sender, origin);
    }

    function startHoax(address sender) internal virtual {
        startHoax(sender, HOAX_BALANCE);
    }

    function startHoax(address sender, uint256 balance) internal virtual {
        vm.deal(sender, balance);
        vm.startPrank(sender);
    }

    function skip(uint256 time) internal virtual {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    function rewind(uint256 time) internal virtual {
        vm.warp(vm.getBlockTimestamp() - time);
    }

    function deal(address account, uint256 balance) internal virtual {
        vm.deal(account, balance);
    }

    /// Sets the balance in a token that keeps it, as the number it is, in one storage slot.
    function deal(address token, address account, uint256 balance) internal virtual {
        vm.record();
        IBalances(token).balanceOf(account);
        (bytes32[] memory slots,) = vm.accesses(token);
        vm.stopRecord();
        for (uint256 number = slots.length; number > 0; number--) {
            bytes32 slot = slots[number - 1];
            bytes32 before = vm.load(token, slot);
            vm.store(token, slot, bytes32(balance));
            if (_balance(token, account) == balance && _follows(token, account, slot, balance)) return;
            vm.store(token, slot, before);
        }
        revert("deal: no storage slot of the token holds this balance");
    }

    /// Whether the balance is what the slot holds, rather than equal by chance. Leaves the slot with `balance`.
    function _follows(address token, address account, bytes32 slot, uint256 balance) private returns (bool follows) {
        uint256 other = balance ^ 1;
        vm.store(token, slot, bytes32(other));
        follows = _balance(token, account) == other;
        vm.store(token, slot, bytes32(balance));
    }

    function _balance(address token, address account) private view returns (uint256 balance) {
        (bool done, bytes memory answer) = token.staticcall(abi.encodeCall(IBalances.balanceOf, (account)));
        return done && answer.length >= 32 ? abi.decode(answer, (uint256)) : 0;
    }

    /// The integers in their order as unsigned ones: the least becomes 0.
    function _shifted(int256 x) private pure returns (uint256) {
        return uint256(x) ^ (1 << 255);
    }

    function _shifted(uint256 x) private pure returns (int256) {
        return int256(x ^ (1 << 255));
    }
}
