// SPDX-License-Identifier: Apache-2.0
// Bounds of the snapshots that kube-scheduler's extender takes. One machine of a cluster must not stop the
// answers for all others. The numbers lie well above those of real hosts.
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace berth::extender {

inline constexpr std::size_t kMaxSnapshotBytes = std::size_t{8} << 20;
// Values of the document, counted by commas and opening brackets before it is read.
inline constexpr std::size_t kMaxSnapshotValues = 1'000'000;
inline constexpr std::size_t kMaxHostNameBytes = 253;  // as of a node's name
inline constexpr std::size_t kMaxVcpus = 1024;
inline constexpr std::size_t kMaxThreadsOfCore = 16;
inline constexpr std::size_t kMaxNumaNodes = 64;
inline constexpr std::size_t kMaxGpus = 64;
inline constexpr std::size_t kMaxWorkloads = 4000;
inline constexpr std::size_t kMaxInstances = 1000;  // latency-sensitive ones, of these
inline constexpr std::size_t kMaxPending = 64;
inline constexpr std::size_t kMaxServices = 4000;
// Workloads with allowed vCPUs of their own, times NUMA nodes.
inline constexpr std::size_t kMaxAllowedSets = 10'000;
// Instances that have no pin which stands, times domains, times vCPUs: so long does the search for their
// vCPUs take. 400 such instances on 512 vCPUs in 64 domains make 13 million.
inline constexpr std::uint64_t kMaxSearchSteps = 16'000'000;
// Of one host, and of all.
inline constexpr std::size_t kMaxHostBytes = std::size_t{2} << 20;
inline constexpr std::size_t kMaxAllHostsBytes = std::size_t{1} << 30;

// Error refused for a document that is too long to be read.
model::Result<void> check_text(std::string_view text);

// Error refused for a snapshot beyond a bound, with the host, its number and the bound.
model::Result<void> check_bounds(const model::Snapshot& snapshot, const policies::PolicySettings& settings);

// A bound of the memory that a Host of the snapshot takes, once more with a copy that has other workloads.
std::size_t kept_bytes(const model::Snapshot& snapshot);

// How often a host may send a snapshot. It costs time to read one, and to find the places of pods anew.

// The member `host` of a JSON object, without reading the rest of the document: at the first level, as a text
// without escapes. nullopt if there is none, or one that is no name of a node.
std::optional<std::string_view> named_host(std::string_view document);

// Takes one snapshot of each host in a time. A name may be invented, so it keeps a limited number of names,
// and forgets the oldest ones.
class SenderRate {
 public:
  // `pause_s`: between two snapshots of a host; 0 is no limit.
  explicit SenderRate(double pause_s, std::size_t most_names = 20'000)
      : pause_s_(pause_s), most_names_(most_names) {}

  // nullopt if a snapshot of the host may come now. Else the seconds until the next one may. Times are
  // seconds of a clock that never steps.
  std::optional<double> wait_s(std::string_view host, double now_s);
  // Counts a snapshot that was read and is valid. Any sender can name any host in one that is not, and so
  // would keep the host's own out.
  void count(std::string_view host, double now_s);

  std::size_t names() const { return until_s_.size(); }

 private:
  double pause_s_;
  std::size_t most_names_;
  std::map<std::string, double, std::less<>> until_s_;   // by host
  std::deque<std::pair<double, std::string>> in_order_;  // the same, the oldest first
};

}  // namespace berth::extender
