// SPDX-License-Identifier: Apache-2.0
// Names on the bus, common to both ends (man/org.berth.Node1.5).
#pragma once

namespace berth::bus {

inline constexpr const char* kServiceName = "org.berth.Node1";
inline constexpr const char* kManagerPath = "/org/berth/Node1";
// Workload objects: this, "/" and the id as sd_bus_path_encode(3) writes it.
inline constexpr const char* kWorkloadPrefix = "/org/berth/Node1/workload";
inline constexpr const char* kLogControlPath = "/org/freedesktop/LogControl1";

inline constexpr const char* kManageAction = "org.berth.node1.manage";
inline constexpr const char* kEvictAction = "org.berth.node1.evict";
inline constexpr const char* kAdmitAction = "org.berth.node1.admit";
inline constexpr const char* kReportProgressAction = "org.berth.node1.report-progress";

inline constexpr const char* kInvalidInput = "org.berth.Node1.Error.InvalidInput";
inline constexpr const char* kNotFound = "org.berth.Node1.Error.NotFound";
inline constexpr const char* kRefused = "org.berth.Node1.Error.Refused";
inline constexpr const char* kFailed = "org.berth.Node1.Error.Failed";
inline constexpr const char* kAccessDenied = "org.freedesktop.DBus.Error.AccessDenied";
inline constexpr const char* kInteractionRequired =
    "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired";
inline constexpr const char* kLimitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded";

}  // namespace berth::bus
