// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::daemon {

// MESSAGE_ID= of berthd's journal entries; systemd/berth.catalog explains each to `journalctl -x`. They are
// published: their meaning never changes.
inline constexpr const char* kMessagePinApplied = "a998b598a88d4d0898bbce5a4f225f3f";
inline constexpr const char* kMessagePinFailed = "bb291500b1bc4a3190e2dad8eda7a636";
inline constexpr const char* kMessageLimitChanged = "898e7f4f34304537ab83429fb71651e4";
inline constexpr const char* kMessageRestored = "d0617e38ec504dfc91ca547842518ca5";
inline constexpr const char* kMessageEvicted = "544ad8e4e39d49aba60712e563477e06";
inline constexpr const char* kMessageEvictionFailed = "35f9e61025f74ea1add81cc73539145a";
inline constexpr const char* kMessageForeignWriter = "e1eb8528728d4f75bf12a7293a68555a";
inline constexpr const char* kMessageLeftAlone = "9059e1b5b0b848f9aa997f3026912b16";
inline constexpr const char* kMessageModeChanged = "6f5eaf208b6e4021937fbe12ee18b9dd";
inline constexpr const char* kMessageReloaded = "ac0921d941de4a939e1d3b5b2f13d050";
inline constexpr const char* kMessageReloadRejected = "9cdde9a3cb3146879c3d44b70220065c";
inline constexpr const char* kMessageStragglerFound = "7b413b1c45384dce84195ef69729f3d3";
inline constexpr const char* kMessageRelocationNeeded = "1a045d8c01e34eefa7ec71e80bf5d5ee";
inline constexpr const char* kMessageAdmission = "2c09573f57fa4b769bf9d545e2dd7247";
inline constexpr const char* kMessageSchedulingState = "94f2b2c410ee43c1892bb90293589ac3";
inline constexpr const char* kMessageGpuUnhealthy = "973633c74cc74f79aec4bac8e8055a65";
inline constexpr const char* kMessageTrial = "c28a14b0b5e54a239443da7635ffae60";
inline constexpr const char* kMessageGpuHealthy = "f81d337ea1ab4948a624eddb3b8587a6";

}  // namespace berth::daemon
