// SPDX-License-Identifier: Apache-2.0
// The figures and the taint of a node object that follow from the state of its berth (berth-kube(8)).
// Pure.
#pragma once

#include "integrations/berth.h"

#include <cstdint>
#include <string>

namespace berth::kubernetes {

using integrations::Berth;

// No node has more: a million cores, and an amount that every reader of JSON holds exactly.
inline constexpr std::uint64_t kMaxCpuMillis = 1'000'000'000;
inline constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{1} << 53;

// The names of berth's members of a node object: "DOMAIN/be-cpu" and so on.
struct Names {
  explicit Names(const std::string& domain)
      : cpu(domain + "/be-cpu"), memory(domain + "/be-memory"), taint(domain + "/no-schedule") {}

  std::string cpu;     // thousandths of a core
  std::string memory;  // bytes
  std::string taint;   // the key
};

// The wanted members of the node object.
struct Wanted {
  std::uint64_t cpu_millis = 0;
  std::uint64_t memory_bytes = 0;
  // The value of the taint: "cpu" or "memory", the resource that keeps work away. Empty: no taint.
  std::string closed;
  friend bool operator==(const Wanted&, const Wanted&) = default;
};

// Best-effort amounts are rounded down: CPU to 1/1000 core, memory to MiB. If both resources are closed, the
// taint names the worse one, and memory if they are alike. Without `taint`, a host that takes no work has
// nothing for best-effort work instead.
Wanted wanted_of(const Berth& berth, bool taint);

// Whether the change from `published` is urgent: of the taint, or of an amount to or from 0.
bool is_urgent(const Wanted& wanted, const Wanted& published);
// Whether an amount differs from the published one by this part of it, or more.
bool is_news(const Wanted& wanted, const Wanted& published, double min_change);

// The JSON merge patches (RFC 7396) of the node's status: with the amounts, and without berth's members.
std::string status_patch(const Wanted& wanted, const Names& names);
std::string status_removal(const Names& names);

// "be-cpu 14200, be-memory 2147483648, taint cpu".
std::string describe(const Wanted& wanted);

}  // namespace berth::kubernetes
