// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace berth::cgroup {

// The attributes of a cgroup that berth changes.
enum class Attribute { cpus, cpu_quota, memory_high, memory_nodes, cpu_idle };
// All, in the order of giving them back to a workload. Its vCPUs come before its priority, as it may have
// borrowed them.
inline constexpr std::array kAttributes{Attribute::cpus, Attribute::memory_nodes, Attribute::cpu_quota,
                                        Attribute::memory_high, Attribute::cpu_idle};

// The control file: "cpuset.cpus", "cpu.max", "memory.high", "cpuset.mems", "cpu.idle"; also the name in log
// and journal.
const char* control_file(Attribute attribute);
// The controller that must be enabled for the file to exist: "cpuset", "cpu", "memory".
const char* controller(Attribute attribute);
// The attribute of a control file's name; nullopt for any other text.
std::optional<Attribute> attribute_of(std::string_view control_file);

}  // namespace berth::cgroup
