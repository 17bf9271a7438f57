// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/extender/documents.h"
#include "model/error.h"
#include "policies/placement/rank.h"
#include "policies/settings.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::extender {

// More hosts are not kept.
inline constexpr std::size_t kMaxHosts = 10'000;
// More assumed pods are not kept; the oldest is forgotten.
inline constexpr std::size_t kMaxAssumed = 20'000;

// The hosts of a cluster as their snapshots show them, with the pods that were just placed (docs/clusters.md,
// the extender). It reads no clock: each call says the time, in seconds that never step.
class Fleet {
 public:
  struct Settings {
    policies::PolicySettings policies;
    double max_age_s = 120;  // a host without a new snapshot for so long is not judged
    double hold_s = 120;     // an assumed pod that no snapshot shows counts for so long
  };
  explicit Fleet(Settings settings) : settings_(std::move(settings)) {}
  Fleet(const Fleet&) = delete;  // hosts refer to the settings
  Fleet& operator=(const Fleet&) = delete;

  // Takes one snapshot. The same one again, by its time, changes nothing. Pods that run in it
  // are no longer assumed. Error invalid_input for a document that cannot be read; refused for a host too
  // many.
  model::Result<void> take(std::string_view snapshot, double now_s);

  // Nodes that hold the pod, and the others with the reason. A node without a fresh snapshot passes, and so
  // does each node for a pod without a request. If a single node passes, the pod is assumed there.
  Filtered filter(const Question& question, double now_s);
  // 10 for the best node, down to 0 for nodes that do not hold the pod; 5 without a fresh snapshot. The pod
  // is then assumed on the best node, until a snapshot shows it, or `hold_s` is over.
  std::vector<Points> prioritize(const Question& question, double now_s);

  std::size_t hosts() const { return hosts_.size(); }
  std::size_t assumed() const { return assumed_.size(); }
  struct Age {
    std::string host;
    double age_s = 0;  // since its last new snapshot came
  };
  // The ages of `most` hosts at most, the oldest first; equal ones by name.
  std::vector<Age> ages(double now_s, std::size_t most) const;

 private:
  struct Assumed {
    std::string uid;
    std::size_t host = 0;
    double until_s = 0;
    model::PendingWorkload request;
  };
  struct Known {
    policies::Host shown;     // by its snapshot
    policies::Host expected;  // with the assumed pods
    double time = 0;          // of the snapshot
    double arrived_s = 0;
    std::uint64_t version = 0;  // of `expected`
  };
  struct Place {
    std::uint64_t version = 0;
    policies::HostPlace place;
  };
  // The places of all hosts for one kind of request, as far as they were asked for.
  struct Places {
    std::string request;  // as text
    std::vector<Place> of_host;
  };

  bool is_fresh(const Known& known, double now_s) const;
  const policies::HostPlace& place_on(Places& places, std::size_t host,
                                      const model::PendingWorkload& request);
  Places& places_for(const model::PendingWorkload& request);
  void forget_old(double now_s);
  void forget(std::list<Assumed>::iterator assumed);
  void forget_shown(const model::Snapshot& snapshot);
  void expect_again(std::size_t host);
  void assume(const std::string& uid, std::size_t host, const model::PendingWorkload& request, double now_s);

  Settings settings_;
  std::vector<Known> hosts_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::list<Assumed> assumed_;  // oldest first
  std::map<std::string, std::list<Assumed>::iterator> by_uid_;
  std::list<Places> places_;  // the last used first
  std::uint64_t versions_ = 0;
};

}  // namespace berth::extender
