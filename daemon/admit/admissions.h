// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/admit/reservations.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/observe/observer.h"
#include "model/error.h"
#include "model/placement_findings.h"
#include "model/snapshot.h"
#include "os/clock.h"
#include "policies/placement/host.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// Decides whether work that is to start may, keeps a place for it until it comes, and gives it that place.
class Admissions {
 public:
  // The host as the last tick left it.
  struct Node {
    Observer& observer;
    const policies::PolicySettings& settings;
    model::Advertised advertised;
    const char* mode;  // "observe" or "enforce"

    bool enforces() const;
  };
  // Made when it is needed: a call may come at any time.
  using NodeNow = std::function<Node()>;

  // Reads what an earlier daemon promised. `warning` says where a part of it is lost.
  Admissions(const std::filesystem::path& runtime_dir, os::Clock clock, NodeNow node,
             std::optional<std::string>& warning);

  // An answer, and what it changed.
  struct Answer {
    std::string text;  // a document, or the id of a decision
    std::vector<LogEntry> entries;
    bool changed = false;  // the snapshot's pending work is not what it was
  };
  // Judges a berth.request/1 document and keeps a place for it; `text` is a berth.admission/1 document.
  // `hold_s` is 1 to 86400, or 0 for placement.hold. Error invalid_input.
  model::Result<Answer> admit(const std::string& request, double hold_s, double now);
  // Ends a reservation before its time; `text` is the decision that had made it. Error gone.
  model::Result<Answer> cancel(const std::string& id, double now);
  // A berth.reservations/1 document.
  std::string json(double now);

  // Remembers workloads that the next meet() takes in.
  void add_arrived(const std::vector<std::string>& workloads);
  // Ends the reservations whose time is over.
  std::vector<LogEntry> expire(double now);
  // Gives the workloads that arrived their places. Only a tick or a placement does so: in between, the place
  // would belong to no workload.
  std::vector<LogEntry> meet(double now);
  // Fills in the work that is waited for. Only enforcing has made room for it.
  void show_pending();
  // The same for a decision that carries out what it plans.
  void set_pending(bool with_room);
  // Takes the room that a plan made for reservations, by id; none where there is no entry.
  void set_room(const std::map<std::string, model::Resources>& room) { reservations_.set_room(room); }
  // The host has changed: what was computed from it is made anew.
  void forget_node();

  std::size_t size() const { return reservations_.size(); }

 private:
  policies::Host host_as_advertised(const Node& node);
  policies::Host host_with_promises(const Node& node, const std::string& but);
  policies::Host& host_for_newcomers(const Node& node);
  std::vector<std::string> kept_gpus(const Node& node, const Reservation& reservation) const;
  model::Admission judge(const Node& node, const model::PendingWorkload& request);

  os::Clock clock_;
  NodeNow node_;
  Reservations reservations_;
  std::vector<std::string> arrived_;
  std::optional<policies::Host> host_;  // for all newcomers between two ticks
  std::optional<std::string> json_;
};

}  // namespace berth::daemon
