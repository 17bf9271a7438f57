// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/blame.h"
#include "model/workload.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::daemon {

// The culprit of a wait: what ran meanwhile. Those of the first four kinds have names.
enum class CulpritKind {
  instance,           // another instance of the same service
  latency_sensitive,  // another latency-sensitive workload
  best_effort,        // a best-effort workload
  cgroup,             // a cgroup without a rule
  self,               // threads of the same workload
  quota,              // nothing ran for it: the workload's quota was used up
  kernel,             // kernel threads
  interrupts,
  steal,    // the hypervisor ran other guests
  idle,     // nothing ran: the vCPU was waking up
  unknown,  // too many ran in turn
};
inline constexpr std::size_t kCulpritKinds = 11;
// "own" for `self`; otherwise as in the enumeration, with "-" for "_".
const char* to_string(CulpritKind kind);

struct CulpritName {
  CulpritKind kind = CulpritKind::unknown;
  std::string name;  // the workload's id, or the cgroup's path; empty for the other kinds

  // NOLINTNEXTLINE(modernize-use-nullptr): there is none
  friend auto operator<=>(const CulpritName&, const CulpritName&) = default;
};

// A workload of the last ticks.
struct BlameWorkload {
  std::string id;
  std::string service;
  model::WorkloadClass workload_class = model::WorkloadClass::best_effort;
};
using BlameWorkloads = std::map<std::uint64_t, BlameWorkload>;  // by the cgroup's id

// Milliseconds of waits, by culprit.
using Blames = std::map<CulpritName, double>;

// The same with `most` names at most, not counting kinds without names. Cgroups that lie beside each other
// share the room evenly, and leave what they do not need. Where a cgroup has more names below it than its
// share, the heaviest keep theirs, and the others count for that cgroup. So a crowd below one cgroup takes no
// name outside, and is seen there as a whole.
Blames fold(const Blames& blames, std::size_t most);

// Gives names to culprits, and adds up the waits. It is limited, whatever users do: they name cgroups.
class BlameLedger {
 public:
  // Names kept of all waiting workloads, and of one, or of one answer: from the least, where many wait, to
  // the most.
  static constexpr std::size_t kMostNames = 16384;
  static constexpr std::size_t kLeastNamesOfOne = 64;
  static constexpr std::size_t kMostNamesOfOne = 1024;
  // Workloads that are kept; one that is gone goes first.
  static constexpr std::size_t kMostWaiting = 256;

  // The waits of one workload's threads since the reading before. `stolen_ms`: that the hypervisor took of
  // them.
  struct Reading {
    struct Wait {
      std::uint64_t by = 0;  // as in ebpf::BlamedWait
      ebpf::CulpritGroup group;
      double ms = 0;
    };
    std::uint64_t cgroup = 0;
    std::vector<Wait> waits;
    double stolen_ms = 0;
  };
  // Nothing where the cgroup is no workload.
  void add(const Reading& reading, const BlameWorkloads& workloads);

  // The waits of a service's workloads, or of the workload with this id.
  Blames of(const std::string& subject) const;
  // Seconds of all workloads' waits since the start, by kind.
  const std::array<double, kCulpritKinds>& seconds() const { return seconds_; }
  // Forgets who waited. seconds() stay.
  void clear() { waiting_.clear(); }
  // The same of a service's workloads or of one workload, but for those in `kept`.
  void forget(const std::string& subject, const std::set<std::string>& kept);

 private:
  struct Waiting {
    std::string service;
    Blames blames;
  };
  static CulpritName name_of(const Reading::Wait& wait, const BlameWorkload& waits,
                             const BlameWorkloads& workloads);
  Waiting* entry_of(const BlameWorkload& workload, const BlameWorkloads& workloads);

  std::map<std::string, Waiting> waiting_;  // by the workload's id
  std::array<double, kCulpritKinds> seconds_{};
};

}  // namespace berth::daemon
