// SPDX-License-Identifier: MIT
pragma solidity >=0.8.0 <0.9.0;

// The cheat codes of forge as an interface, parameters without names. Costs a test a few milliseconds of compiling.
// What a cheat code does is forge's; what is refused in the sandbox compiles here and fails there, with forge's reason.

interface Vm {
    enum CallerMode { None, Broadcast, RecurrentBroadcast, Prank, RecurrentPrank }
    enum AccountAccessKind {
        Call, DelegateCall, CallCode, StaticCall, Create, SelfDestruct, Resume, Balance, Extcodesize, Extcodehash,
        Extcodecopy
    }
    enum ForgeContext {
        TestGroup, Test, Coverage, Snapshot, ScriptGroup, ScriptDryRun, ScriptBroadcast, ScriptResume, Unknown
    }

    struct Log { bytes32[] topics; bytes data; address emitter; }
    struct Wallet { address addr; uint256 publicKeyX; uint256 publicKeyY; uint256 privateKey; }
    struct Gas {
        uint64 gasLimit; uint64 gasTotalUsed; uint64 gasMemoryUsed; int64 gasRefunded; uint64 gasRemaining;
    }
    struct PotentialRevert { address reverter; bool partialMatch; bytes revertData; }
    struct SignedDelegation { uint8 v; bytes32 r; bytes32 s; uint64 nonce; address implementation; }
    struct FfiResult { int32 exitCode; bytes stdout; bytes stderr; }
    struct ChainInfo { uint256 forkId; uint256 chainId; }
    struct StorageAccess {
        address account; bytes32 slot; bool isWrite; bytes32 previousValue; bytes32 newValue; bool reverted;
    }
    struct AccountAccess {
        ChainInfo chainInfo; AccountAccessKind kind; address account; address accessor; bool initialized;
        uint256 oldBalance; uint256 newBalance; bytes deployedCode; uint256 value; bytes data; bool reverted;
        StorageAccess[] storageAccesses; uint64 depth; uint64 oldNonce; uint64 newNonce;
    }

    // who calls

    function prank(address) external;
    function prank(address, bool) external;
    function prank(address, address) external;
    function prank(address, address, bool) external;
    function startPrank(address) external;
    function startPrank(address, bool) external;
    function startPrank(address, address) external;
    function startPrank(address, address, bool) external;
    function stopPrank() external;
    function readCallers() external view returns (CallerMode, address, address);

    // accounts

    function deal(address, uint256) external;
    function etch(address, bytes calldata) external;
    function load(address, bytes32) external view returns (bytes32);
    function store(address, bytes32, bytes32) external;
    function getNonce(address) external view returns (uint64);
    function getNonce(Wallet calldata) external view returns (uint64);
    function setNonce(address, uint64) external;
    function setNonceUnsafe(address, uint64) external;
    function resetNonce(address) external;
    function label(address, string calldata) external;
    function getLabel(address) external view returns (string memory);
    function allowCheatcodes(address) external;
    function copyStorage(address, address) external;
    function cloneAccount(address, address) external;
    function setArbitraryStorage(address) external;
    function setArbitraryStorage(address, bool) external;
    function cool(address) external;
    function coolSlot(address, bytes32) external;
    function warmSlot(address, bytes32) external;

    // the block

    function warp(uint256) external;
    function roll(uint256) external;
    function fee(uint256) external;
    function chainId(uint256) external;
    function coinbase(address) external;
    function prevrandao(bytes32) external;
    function prevrandao(uint256) external;
    function difficulty(uint256) external;
    function txGasPrice(uint256) external;
    function blobBaseFee(uint256) external;
    function blobhashes(bytes32[] calldata) external;
    function setBlockhash(uint256, bytes32) external;
    function getBlockNumber() external view returns (uint256);
    function getBlockTimestamp() external view returns (uint256);
    function getBlobBaseFee() external view returns (uint256);
    function getChainId() external view returns (uint256);
    function getEvmVersion() external pure returns (string memory);
    function setEvmVersion(string calldata) external;

    // what is to happen

    function expectRevert() external;
    function expectRevert(bytes4) external;
    function expectRevert(uint64) external;
    function expectRevert(address) external;
    function expectRevert(bytes calldata) external;
    function expectRevert(bytes4, uint64) external;
    function expectRevert(address, uint64) external;
    function expectRevert(bytes4, address) external;
    function expectRevert(bytes calldata, uint64) external;
    function expectRevert(bytes calldata, address) external;
    function expectRevert(bytes4, address, uint64) external;
    function expectRevert(bytes calldata, address, uint64) external;
    function expectPartialRevert(bytes4) external;
    function expectPartialRevert(bytes4, address) external;
    function expectEmit() external;
    function expectEmit(uint64) external;
    function expectEmit(address) external;
    function expectEmit(address, uint64) external;
    function expectEmit(bool, bool, bool, bool) external;
    function expectEmit(bool, bool, bool, bool, uint64) external;
    function expectEmit(bool, bool, bool, bool, address) external;
    function expectEmit(bool, bool, bool, bool, address, uint64) external;
    function expectEmitAnonymous() external;
    function expectEmitAnonymous(address) external;
    function expectEmitAnonymous(bool, bool, bool, bool, bool) external;
    function expectEmitAnonymous(bool, bool, bool, bool, bool, address) external;
    function expectCall(address, bytes calldata) external;
    function expectCall(address, bytes calldata, uint64) external;
    function expectCall(address, uint256, bytes calldata) external;
    function expectCall(address, uint256, bytes calldata, uint64) external;
    function expectCall(address, uint256, uint64, bytes calldata) external;
    function expectCall(address, uint256, uint64, bytes calldata, uint64) external;
    function expectCallMinGas(address, uint256, uint64, bytes calldata) external;
    function expectCallMinGas(address, uint256, uint64, bytes calldata, uint64) external;
    function expectCreate(bytes calldata, address) external;
    function expectCreate2(bytes calldata, address) external;
    function expectSafeMemory(uint64, uint64) external;
    function expectSafeMemoryCall(uint64, uint64) external;
    function stopExpectSafeMemory() external;

    // inputs

    function assume(bool) external pure;
    function assumeNoRevert() external pure;
    function assumeNoRevert(PotentialRevert calldata) external pure;
    function assumeNoRevert(PotentialRevert[] calldata) external pure;
    function skip(bool) external;
    function skip(bool, string calldata) external;
    function bound(int256, int256, int256) external view returns (int256);
    function bound(uint256, uint256, uint256) external view returns (uint256);
    function randomAddress() external view returns (address);
    function randomBool() external view returns (bool);
    function randomBytes(uint256) external view returns (bytes memory);
    function randomBytes4() external view returns (bytes4);
    function randomBytes8() external view returns (bytes8);
    function randomInt() external view returns (int256);
    function randomInt(uint256) external view returns (int256);
    function randomUint() external view returns (uint256);
    function randomUint(uint256) external view returns (uint256);
    function randomUint(uint256, uint256) external view returns (uint256);
    function setSeed(uint256) external;
    function shuffle(uint256[] calldata) external returns (uint256[] memory);
    function sort(uint256[] calldata) external returns (uint256[] memory);

    // calls that are answered here

    function mockCall(address, bytes4, bytes calldata) external;
    function mockCall(address, bytes calldata, bytes calldata) external;
    function mockCall(address, uint256, bytes4, bytes calldata) external;
    function mockCall(address, uint256, bytes calldata, bytes calldata) external;
    function mockCalls(address, bytes calldata, bytes[] calldata) external;
    function mockCalls(address, uint256, bytes calldata, bytes[] calldata) external;
    function mockCallRevert(address, bytes4, bytes calldata) external;
    function mockCallRevert(address, bytes calldata, bytes calldata) external;
    function mockCallRevert(address, uint256, bytes4, bytes calldata) external;
    function mockCallRevert(address, uint256, bytes calldata, bytes calldata) external;
    function mockFunction(address, address, bytes calldata) external;
    function clearMockedCalls() external;

    // what has happened

    function record() external;
    function stopRecord() external;
    function accesses(address) external view returns (bytes32[] memory, bytes32[] memory);
    function recordLogs() external;
    function getRecordedLogs() external view returns (Log[] memory);
    function getRecordedLogsJson() external view returns (string memory);
    function startStateDiffRecording() external;
    function stopAndReturnStateDiff() external returns (AccountAccess[] memory);
    function getStateDiff() external view returns (string memory);
    function getStateDiffJson() external view returns (string memory);
    function getStorageAccesses() external view returns (StorageAccess[] memory);
    function startMappingRecording() external;
    function stopMappingRecording() external;
    function getMappingKeyAndParentOf(address, bytes32) external view returns (bool, bytes32, bytes32);
    function getMappingLength(address, bytes32) external view returns (uint256);
    function getMappingSlotAt(address, bytes32, uint256) external view returns (bytes32);

    // states to come back to

    function snapshotState() external returns (uint256);
    function revertToState(uint256) external returns (bool);
    function revertToStateAndDelete(uint256) external returns (bool);
    function deleteStateSnapshot(uint256) external returns (bool);
    function deleteStateSnapshots() external;
    function snapshot() external returns (uint256);
    function revertTo(uint256) external returns (bool);
    function revertToAndDelete(uint256) external returns (bool);
    function deleteSnapshot(uint256) external returns (bool);
    function deleteSnapshots() external;

    // gas

    function lastCallGas() external view returns (Gas memory);
    function pauseGasMetering() external;
    function resumeGasMetering() external;
    function resetGasMetering() external;
    function startSnapshotGas(string calldata) external;
    function startSnapshotGas(string calldata, string calldata) external;
    function stopSnapshotGas() external returns (uint256);
    function stopSnapshotGas(string calldata) external returns (uint256);
    function stopSnapshotGas(string calldata, string calldata) external returns (uint256);
    function snapshotGasLastCall(string calldata) external returns (uint256);
    function snapshotGasLastCall(string calldata, string calldata) external returns (uint256);
    function snapshotValue(string calldata, uint256) external;
    function snapshotValue(string calldata, string calldata, uint256) external;
    function pauseTracing() external view;
    function resumeTracing() external view;
    function isContext(ForgeContext) external view returns (bool);

    // keys and addresses

    function addr(uint256) external pure returns (address);
    function createWallet(uint256) external returns (Wallet memory);
    function createWallet(string calldata) external returns (Wallet memory);
    function createWallet(uint256, string calldata) external returns (Wallet memory);
    function deriveKey(string calldata, uint32) external pure returns (uint256);
    function deriveKey(string calldata, string calldata, uint32) external pure returns (uint256);
    function deriveKey(string calldata, uint32, string calldata) external pure returns (uint256);
    function deriveKey(string calldata, string calldata, uint32, string calldata) external pure returns (uint256);
    function rememberKey(uint256) external returns (address);
    function rememberKeys(string calldata, string calldata, uint32) external returns (address[] memory);
    function sign(bytes32) external pure returns (uint8, bytes32, bytes32);
    function sign(address, bytes32) external pure returns (uint8, bytes32, bytes32);
    function sign(uint256, bytes32) external pure returns (uint8, bytes32, bytes32);
    function sign(Wallet calldata, bytes32) external pure returns (uint8, bytes32, bytes32);
    function signCompact(bytes32) external pure returns (bytes32, bytes32);
    function signCompact(address, bytes32) external pure returns (bytes32, bytes32);
    function signCompact(uint256, bytes32) external pure returns (bytes32, bytes32);
    function signCompact(Wallet calldata, bytes32) external pure returns (bytes32, bytes32);
    function signP256(uint256, bytes32) external pure returns (bytes32, bytes32);
    function publicKeyP256(uint256) external pure returns (uint256, uint256);
    function computeCreate2Address(bytes32, bytes32) external pure returns (address);
    function computeCreate2Address(bytes32, bytes32, address) external pure returns (address);
    function computeCreateAddress(address, uint256) external pure returns (address);
    function signDelegation(address, uint256) external returns (SignedDelegation memory);
    function signDelegation(address, uint256, bool) external returns (SignedDelegation memory);
    function signDelegation(address, uint256, uint64) external returns (SignedDelegation memory);
    function attachDelegation(SignedDelegation calldata) external;
    function attachDelegation(SignedDelegation calldata, bool) external;
    function signAndAttachDelegation(address, uint256) external returns (SignedDelegation memory);
    function signAndAttachDelegation(address, uint256, bool) external returns (SignedDelegation memory);
    function signAndAttachDelegation(address, uint256, uint64) external returns (SignedDelegation memory);
    function getWallets() external view returns (address[] memory);

    // texts

    function toString(bool) external pure returns (string memory);
    function toString(int256) external pure returns (string memory);
    function toString(address) external pure returns (string memory);
    function toString(bytes32) external pure returns (string memory);
    function toString(uint256) external pure returns (string memory);
    function toString(bytes calldata) external pure returns (string memory);
    function parseAddress(string calldata) external pure returns (address);
    function parseBool(string calldata) external pure returns (bool);
    function parseBytes(string calldata) external pure returns (bytes memory);
    function parseBytes32(string calldata) external pure returns (bytes32);
    function parseInt(string calldata) external pure returns (int256);
    function parseUint(string calldata) external pure returns (uint256);
    function split(string calldata, string calldata) external pure returns (string[] memory);
    function trim(string calldata) external pure returns (string memory);
    function replace(string calldata, string calldata, string calldata) external pure returns (string memory);
    function contains(string calldata, string calldata) external pure returns (bool);
    function indexOf(string calldata, string calldata) external pure returns (uint256);
    function toLowercase(string calldata) external pure returns (string memory);
    function toUppercase(string calldata) external pure returns (string memory);
    function toBase64(bytes calldata) external pure returns (string memory);
    function toBase64(string calldata) external pure returns (string memory);
    function toBase64URL(bytes calldata) external pure returns (string memory);
    function toBase64URL(string calldata) external pure returns (string memory);
    function toRlp(bytes[] calldata) external pure returns (bytes memory);
    function fromRlp(bytes calldata) external pure returns (bytes[] memory);
    function ensNamehash(string calldata) external pure returns (bytes32);
    function eip712HashStruct(string calldata, bytes calldata) external pure returns (bytes32);
    function eip712HashStruct(string calldata, string calldata, bytes calldata) external pure returns (bytes32);
    function eip712HashType(string calldata) external pure returns (bytes32);
    function eip712HashType(string calldata, string calldata) external pure returns (bytes32);
    function eip712HashTypedData(string calldata) external pure returns (bytes32);

    // JSON

    function parseJson(string calldata) external pure returns (bytes memory);
    function parseJson(string calldata, string calldata) external pure returns (bytes memory);
    function parseJsonAddress(string calldata, string calldata) external pure returns (address);
    function parseJsonAddressArray(string calldata, string calldata) external pure returns (address[] memory);
    function parseJsonBool(string calldata, string calldata) external pure returns (bool);
    function parseJsonBoolArray(string calldata, string calldata) external pure returns (bool[] memory);
    function parseJsonBytes(string calldata, string calldata) external pure returns (bytes memory);
    function parseJsonBytes32(string calldata, string calldata) external pure returns (bytes32);
    function parseJsonBytes32Array(string calldata, string calldata) external pure returns (bytes32[] memory);
    function parseJsonBytesArray(string calldata, string calldata) external pure returns (bytes[] memory);
    function parseJsonInt(string calldata, string calldata) external pure returns (int256);
    function parseJsonIntArray(string calldata, string calldata) external pure returns (int256[] memory);
    function parseJsonKeys(string calldata, string calldata) external pure returns (string[] memory);
    function parseJsonString(string calldata, string calldata) external pure returns (string memory);
    function parseJsonStringArray(string calldata, string calldata) external pure returns (string[] memory);
    function parseJsonUint(string calldata, string calldata) external pure returns (uint256);
    function parseJsonUintArray(string calldata, string calldata) external pure returns (uint256[] memory);
    function keyExistsJson(string calldata, string calldata) external view returns (bool);
    function serializeAddress(string calldata, string calldata, address) external returns (string memory);
    function serializeAddress(string calldata, string calldata, address[] calldata) external returns (string memory);
    function serializeBool(string calldata, string calldata, bool) external returns (string memory);
    function serializeBool(string calldata, string calldata, bool[] calldata) external returns (string memory);
    function serializeBytes(string calldata, string calldata, bytes calldata) external returns (string memory);
    function serializeBytes(string calldata, string calldata, bytes[] calldata) external returns (string memory);
    function serializeBytes32(string calldata, string calldata, bytes32) external returns (string memory);
    function serializeBytes32(string calldata, string calldata, bytes32[] calldata) external returns (string memory);
    function serializeInt(string calldata, string calldata, int256) external returns (string memory);
    function serializeInt(string calldata, string calldata, int256[] calldata) external returns (string memory);
    function serializeJson(string calldata, string calldata) external returns (string memory);
    function serializeString(string calldata, string calldata, string calldata) external returns (string memory);
    function serializeString(string calldata, string calldata, string[] calldata) external returns (string memory);
    function serializeUint(string calldata, string calldata, uint256) external returns (string memory);
    function serializeUint(string calldata, string calldata, uint256[] calldata) external returns (string memory);
    function serializeUintToHex(string calldata, string calldata, uint256) external returns (string memory);
    function writeJson(string calldata, string calldata) external;
    function writeJson(string calldata, string calldata, string calldata) external;

    // environment, files, programs, networks: refused by the sandbox, or empty there

    function envAddress(string calldata) external view returns (address);
    function envAddress(string calldata, string calldata) external view returns (address[] memory);
    function envBool(string calldata) external view returns (bool);
    function envBool(string calldata, string calldata) external view returns (bool[] memory);
    function envBytes(string calldata) external view returns (bytes memory);
    function envBytes(string calldata, string calldata) external view returns (bytes[] memory);
    function envBytes32(string calldata) external view returns (bytes32);
    function envBytes32(string calldata, string calldata) external view returns (bytes32[] memory);
    function envExists(string calldata) external view returns (bool);
    function envInt(string calldata) external view returns (int256);
    function envInt(string calldata, string calldata) external view returns (int256[] memory);
    function envOr(string calldata, bool) external view returns (bool);
    function envOr(string calldata, int256) external view returns (int256);
    function envOr(string calldata, address) external view returns (address);
    function envOr(string calldata, bytes32) external view returns (bytes32);
    function envOr(string calldata, uint256) external view returns (uint256);
    function envOr(string calldata, bytes calldata) external view returns (bytes memory);
    function envOr(string calldata, string calldata) external view returns (string memory);
    function envOr(string calldata, string calldata, bool[] calldata) external view returns (bool[] memory);
    function envOr(string calldata, string calldata, bytes[] calldata) external view returns (bytes[] memory);
    function envOr(string calldata, string calldata, int256[] calldata) external view returns (int256[] memory);
    function envOr(string calldata, string calldata, string[] calldata) external view returns (string[] memory);
    function envOr(string calldata, string calldata, address[] calldata) external view returns (address[] memory);
    function envOr(string calldata, string calldata, bytes32[] calldata) external view returns (bytes32[] memory);
    function envOr(string calldata, string calldata, uint256[] calldata) external view returns (uint256[] memory);
    function envString(string calldata) external view returns (string memory);
    function envString(string calldata, string calldata) external view returns (string[] memory);
    function envUint(string calldata) external view returns (uint256);
    function envUint(string calldata, string calldata) external view returns (uint256[] memory);
    function setEnv(string calldata, string calldata) external;
    function unixTime() external view returns (uint256);
    function sleep(uint256) external;
    function projectRoot() external view returns (string memory);
    function currentFilePath() external view returns (string memory);
    function getCode(string calldata) external view returns (bytes memory);
    function getDeployedCode(string calldata) external view returns (bytes memory);
    function deployCode(string calldata) external returns (address);
    function deployCode(string calldata, bytes32) external returns (address);
    function deployCode(string calldata, uint256) external returns (address);
    function deployCode(string calldata, bytes calldata) external returns (address);
    function deployCode(string calldata, uint256, bytes32) external returns (address);
    function deployCode(string calldata, bytes calldata, bytes32) external returns (address);
    function deployCode(string calldata, bytes calldata, uint256) external returns (address);
    function deployCode(string calldata, bytes calldata, uint256, bytes32) external returns (address);
    function readFile(string calldata) external view returns (string memory);
    function readFileBinary(string calldata) external view returns (bytes memory);
    function readLine(string calldata) external view returns (string memory);
    function writeFile(string calldata, string calldata) external;
    function writeFileBinary(string calldata, bytes calldata) external;
    function writeLine(string calldata, string calldata) external;
    function closeFile(string calldata) external;
    function copyFile(string calldata, string calldata) external returns (uint64);
    function removeFile(string calldata) external;
    function createDir(string calldata, bool) external;
    function removeDir(string calldata, bool) external;
    function exists(string calldata) external view returns (bool);
    function isFile(string calldata) external view returns (bool);
    function isDir(string calldata) external view returns (bool);
    function ffi(string[] calldata) external returns (bytes memory);
    function tryFfi(string[] calldata) external returns (FfiResult memory);
    function prompt(string calldata) external returns (string memory);
    function promptAddress(string calldata) external returns (address);
    function promptSecret(string calldata) external returns (string memory);
    function promptSecretUint(string calldata) external returns (uint256);
    function promptUint(string calldata) external returns (uint256);
    function dumpState(string calldata) external;
    function loadAllocs(string calldata) external;
    function createFork(string calldata) external returns (uint256);
    function createFork(string calldata, bytes32) external returns (uint256);
    function createFork(string calldata, uint256) external returns (uint256);
    function createSelectFork(string calldata) external returns (uint256);
    function createSelectFork(string calldata, bytes32) external returns (uint256);
    function createSelectFork(string calldata, uint256) external returns (uint256);
    function selectFork(uint256) external;
    function rollFork(bytes32) external;
    function rollFork(uint256) external;
    function rollFork(uint256, bytes32) external;
    function rollFork(uint256, uint256) external;
    function activeFork() external view returns (uint256);
    function rpc(string calldata, string calldata) external returns (bytes memory);
    function rpc(string calldata, string calldata, string calldata) external returns (bytes memory);
    function rpcUrl(string calldata) external view returns (string memory);
    function rpcUrls() external view returns (string[2][] memory);
    function makePersistent(address) external;
    function makePersistent(address, address) external;
    function makePersistent(address[] calldata) external;
    function makePersistent(address, address, address) external;
    function revokePersistent(address) external;
    function revokePersistent(address[] calldata) external;
    function isPersistent(address) external view returns (bool);
    function transact(bytes32) external;
    function transact(uint256, bytes32) external;
    function broadcast() external;
    function broadcast(address) external;
    function broadcast(uint256) external;
    function startBroadcast() external;
    function startBroadcast(address) external;
    function startBroadcast(uint256) external;
    function stopBroadcast() external;
    function getFoundryVersion() external view returns (string memory);

    // assertions, each also with a text for the failure

    function assertTrue(bool) external pure;
    function assertTrue(bool, string calldata) external pure;
    function assertFalse(bool) external pure;
    function assertFalse(bool, string calldata) external pure;
    function assertEq(bool, bool) external pure;
    function assertEq(int256, int256) external pure;
    function assertEq(address, address) external pure;
    function assertEq(bytes32, bytes32) external pure;
    function assertEq(uint256, uint256) external pure;
    function assertEq(bool, bool, string calldata) external pure;
    function assertEq(bytes calldata, bytes calldata) external pure;
    function assertEq(int256, int256, string calldata) external pure;
    function assertEq(bool[] calldata, bool[] calldata) external pure;
    function assertEq(string calldata, string calldata) external pure;
    function assertEq(address, address, string calldata) external pure;
    function assertEq(bytes32, bytes32, string calldata) external pure;
    function assertEq(uint256, uint256, string calldata) external pure;
    function assertEq(bytes[] calldata, bytes[] calldata) external pure;
    function assertEq(int256[] calldata, int256[] calldata) external pure;
    function assertEq(string[] calldata, string[] calldata) external pure;
    function assertEq(address[] calldata, address[] calldata) external pure;
    function assertEq(bytes32[] calldata, bytes32[] calldata) external pure;
    function assertEq(uint256[] calldata, uint256[] calldata) external pure;
    function assertEq(bytes calldata, bytes calldata, string calldata) external pure;
    function assertEq(bool[] calldata, bool[] calldata, string calldata) external pure;
    function assertEq(string calldata, string calldata, string calldata) external pure;
    function assertEq(bytes[] calldata, bytes[] calldata, string calldata) external pure;
    function assertEq(int256[] calldata, int256[] calldata, string calldata) external pure;
    function assertEq(string[] calldata, string[] calldata, string calldata) external pure;
    function assertEq(address[] calldata, address[] calldata, string calldata) external pure;
    function assertEq(bytes32[] calldata, bytes32[] calldata, string calldata) external pure;
    function assertEq(uint256[] calldata, uint256[] calldata, string calldata) external pure;
    function assertNotEq(bool, bool) external pure;
    function assertNotEq(int256, int256) external pure;
    function assertNotEq(address, address) external pure;
    function assertNotEq(bytes32, bytes32) external pure;
    function assertNotEq(uint256, uint256) external pure;
    function assertNotEq(bool, bool, string calldata) external pure;
    function assertNotEq(bytes calldata, bytes calldata) external pure;
    function assertNotEq(int256, int256, string calldata) external pure;
    function assertNotEq(bool[] calldata, bool[] calldata) external pure;
    function assertNotEq(string calldata, string calldata) external pure;
    function assertNotEq(address, address, string calldata) external pure;
    function assertNotEq(bytes32, bytes32, string calldata) external pure;
    function assertNotEq(uint256, uint256, string calldata) external pure;
    function assertNotEq(bytes[] calldata, bytes[] calldata) external pure;
    function assertNotEq(int256[] calldata, int256[] calldata) external pure;
    function assertNotEq(string[] calldata, string[] calldata) external pure;
    function assertNotEq(address[] calldata, address[] calldata) external pure;
    function assertNotEq(bytes32[] calldata, bytes32[] calldata) external pure;
    function assertNotEq(uint256[] calldata, uint256[] calldata) external pure;
    function assertNotEq(bytes calldata, bytes calldata, string calldata) external pure;
    function assertNotEq(bool[] calldata, bool[] calldata, string calldata) external pure;
    function assertNotEq(string calldata, string calldata, string calldata) external pure;
    function assertNotEq(bytes[] calldata, bytes[] calldata, string calldata) external pure;
    function assertNotEq(int256[] calldata, int256[] calldata, string calldata) external pure;
    function assertNotEq(string[] calldata, string[] calldata, string calldata) external pure;
    function assertNotEq(address[] calldata, address[] calldata, string calldata) external pure;
    function assertNotEq(bytes32[] calldata, bytes32[] calldata, string calldata) external pure;
    function assertNotEq(uint256[] calldata, uint256[] calldata, string calldata) external pure;
    function assertGe(int256, int256) external pure;
    function assertGe(uint256, uint256) external pure;
    function assertGe(int256, int256, string calldata) external pure;
    function assertGe(uint256, uint256, string calldata) external pure;
    function assertGt(int256, int256) external pure;
    function assertGt(uint256, uint256) external pure;
    function assertGt(int256, int256, string calldata) external pure;
    function assertGt(uint256, uint256, string calldata) external pure;
    function assertLe(int256, int256) external pure;
    function assertLe(uint256, uint256) external pure;
    function assertLe(int256, int256, string calldata) external pure;
    function assertLe(uint256, uint256, string calldata) external pure;
    function assertLt(int256, int256) external pure;
    function assertLt(uint256, uint256) external pure;
    function assertLt(int256, int256, string calldata) external pure;
    function assertLt(uint256, uint256, string calldata) external pure;
    function assertApproxEqAbs(int256, int256, uint256) external pure;
    function assertApproxEqAbs(uint256, uint256, uint256) external pure;
    function assertApproxEqAbs(int256, int256, uint256, string calldata) external pure;
    function assertApproxEqAbs(uint256, uint256, uint256, string calldata) external pure;
    function assertApproxEqRel(int256, int256, uint256) external pure;
    function assertApproxEqRel(uint256, uint256, uint256) external pure;
    function assertApproxEqRel(int256, int256, uint256, string calldata) external pure;
    function assertApproxEqRel(uint256, uint256, uint256, string calldata) external pure;
}
