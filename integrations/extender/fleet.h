// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/extender/documents.h"
#include "integrations/extender/snapshot_bounds.h"
#include "model/error.h"
#include "policies/placement/rank.h"
#include "policies/settings.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::extender {

// More hosts are not kept. One that is not fresh any more gives way to a new one.
inline constexpr std::size_t kMaxHosts = 10'000;
// More assumed pods are not kept; the oldest is forgotten.
inline constexpr std::size_t kMaxAssumed = 20'000;
// More are not assumed on one host. A node runs 110 pods by default.
inline constexpr std::size_t kMaxAssumedOnHost = 512;
// The places of more kinds of requests are not kept, but the last used ones are. They take some 9 MB a kind
// with 10,000 hosts, beside the memory of the hosts.
inline constexpr std::size_t kMaxKinds = 32;

// The hosts of a cluster as their snapshots show them, with the pods that were just placed (docs/clusters.md,
// the extender). Each call says the time, in seconds that never step.
class Fleet {
 public:
  struct Settings {
    policies::PolicySettings policies;
    double max_age_s = 120;  // a host without a new snapshot for so long is not judged
    double hold_s = 120;     // an assumed pod that no snapshot shows counts for so long
    std::size_t max_hosts = kMaxHosts;
    std::size_t max_bytes = kMaxAllHostsBytes;  // of all hosts
    double pause_s = 0;                         // between two snapshots of a host
    // A question looks for new places for so long, by this clock. Without a clock it takes the time it needs.
    double question_s = 1;
    std::function<double()> clock = nullptr;
  };
  explicit Fleet(Settings settings) : settings_(std::move(settings)), rate_(settings_.pause_s) {}
  Fleet(const Fleet&) = delete;  // hosts refer to the settings
  Fleet& operator=(const Fleet&) = delete;

  // Takes one snapshot. The same one again, by its time, changes nothing. Pods that run in it
  // are no longer assumed. Error invalid_input for a document that cannot be read. Error refused for one that
  // is beyond a bound (snapshot_bounds.h), and for a host too many while all others are fresh. Error
  // transient for a host that sends another one within `pause_s` of a valid one; that one is not read.
  model::Result<void> take(std::string_view snapshot, double now_s);

  // Nodes that hold the pod, and the others with the reason. Only snapshots count here: every program that
  // can ask can have pods assumed. A node without a fresh snapshot passes, and so does each node for a pod
  // without a request. If a single node passes, the pod is assumed there.
  // For nodes that were not reached in `question_s`, the place by an earlier snapshot stands. Without one,
  // the node passes.
  Filtered filter(const Question& question, double now_s);
  // 10 for the best node, down to 0 for nodes that do not hold the pod beside the assumed ones; 5 without a
  // fresh snapshot. The pod is then assumed on the best node, until a snapshot shows it, or `hold_s` is over.
  std::vector<Points> prioritize(const Question& question, double now_s);

  std::size_t hosts() const { return by_name_.size(); }
  std::size_t assumed() const { return assumed_.size(); }
  std::size_t kinds() const { return places_.size(); }
  struct Age {
    std::string host;
    double age_s = 0;  // since its last new snapshot came
  };
  // The ages of `most` hosts at most, the oldest first; equal ones by name.
  std::vector<Age> ages(double now_s, std::size_t most) const;
  // Memory that the hosts take, as kept_bytes() counts it.
  std::size_t bytes() const { return bytes_; }
  // How often an assumed pod was given a place on its host: the work for assumptions.
  std::uint64_t placings() const { return placings_; }

 private:
  struct Assumed {
    std::string uid;
    std::size_t host = 0;
    double until_s = 0;
    model::PendingWorkload request;
  };
  using AssumedPod = std::list<Assumed>::iterator;
  struct Known {
    std::string name;
    std::optional<policies::Host> shown;     // by its snapshot; nullopt: the entry is free
    std::optional<policies::Host> expected;  // with the assumed pods, once it was asked for
    std::vector<AssumedPod> assumed;         // oldest first
    double time = 0;                         // of the snapshot
    double arrived_s = 0;
    std::size_t bytes = 0;
    std::uint64_t first_version = 0;  // of this host in this entry
    std::uint64_t shown_version = 0;
    std::uint64_t expected_version = 0;
  };
  // The best place on one host, or the reason why none fits.
  struct Judged {
    std::uint64_t version = 0;  // of the host
    std::optional<policies::PlaceOrder> order;
    std::string rejection;
  };
  static Judged judged(policies::HostPlace place, std::uint64_t version);
  // The places of all hosts for one kind of request, as far as they were asked for.
  struct Places {
    std::string request;  // as text
    std::vector<Judged> shown;
    std::vector<Judged> expected;
  };

  bool is_fresh(const Known& known, double now_s) const;
  // The index of the node's host; nullopt without a fresh snapshot.
  std::optional<std::size_t> fresh_host(const std::string& node, double now_s) const;
  const policies::Host& expected_on(Known& known);
  void place(policies::Host& host, const model::PendingWorkload& request);
  // The time by Settings::clock at which a question that begins now is to end; nullopt for never.
  std::optional<double> end_of_question() const;
  bool is_over(std::optional<double> end_s) const;
  // nullptr if there is no time to find the place, and none is kept.
  const Judged* shown_place(Places& places, std::size_t host, const model::PendingWorkload& request,
                            std::optional<double> end_s);
  const Judged* expected_place(Places& places, std::size_t host, const model::PendingWorkload& request,
                               std::optional<double> end_s);
  Places& places_for(const model::PendingWorkload& request);
  void changed(Known& known);
  void forget_old(double now_s);
  void forget(AssumedPod assumed);
  void forget(const std::string& uid);
  void forget_shown(const model::Snapshot& snapshot);
  // Frees the entry of the host that has been silent for longest, if it is not fresh.
  bool drop_stalest(double now_s);
  model::Result<void> make_room(const std::string& host, std::size_t bytes, double now_s);
  Known& entry_of(const std::string& host);
  void assume(const std::string& uid, std::size_t host, const model::PendingWorkload& request, double now_s);

  Settings settings_;
  SenderRate rate_;
  std::vector<Known> hosts_;
  std::vector<std::size_t> free_;  // entries of `hosts_`
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::list<Assumed> assumed_;  // oldest first
  std::map<std::string, AssumedPod, std::less<>> by_uid_;
  std::list<Places> places_;  // the last used first
  std::size_t bytes_ = 0;
  std::uint64_t versions_ = 0;
  std::uint64_t placings_ = 0;
};

}  // namespace berth::extender
