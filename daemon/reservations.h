// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/placement_findings.h"
#include "model/snapshot.h"
#include "model/straggler_findings.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The place that is kept for a workload which was let in and has not come yet.
struct Reservation {
  model::PendingWorkload request;
  double since = 0;                    // epoch seconds
  double hold_s = 0;                   // from then on
  std::vector<std::string> gpus = {};  // those that it was told it would get
  std::string decision = {};           // that let it in

  double until() const { return since + hold_s; }
};

// Whether one asks the same as what is held, whatever the daemon has come to since.
bool is_same_request(model::PendingWorkload held, const model::PendingWorkload& request);

// Whether a workload's id (its cgroup path) is meant by a request's: it is the same, or one of its
// directories has that name, with or without the suffix of a systemd unit.
bool is_meant(const std::string& request, const std::string& workload);

// Reservations, in the order in which they were let in, each until its workload comes or its time is over.
// Kept in RUNTIME_DIR/reservations.json, so that a restart of the daemon breaks no promise.
class Reservations {
 public:
  static constexpr std::size_t kMost = 1000;

  // Reads what an earlier daemon left; a file that cannot be read is as good as none, and `warning` says so.
  Reservations(const std::filesystem::path& runtime_dir, std::optional<std::string>& warning);

  // Adds one, last; one of the same id is replaced, and keeps its turn if it asks the same. Error refused
  // where there are kMost; io where it could not be written down, the reservation being in force.
  model::Result<void> hold(Reservation reservation);
  // Ends it; false where there is none.
  bool release(const std::string& id);
  // Ends those whose time is over, and returns them. One made in the future, before the clock was set back,
  // lasts its time from now on. Those whose id `has_come` are left to meet().
  std::vector<Reservation> expire(double now, const std::function<bool(const std::string&)>& has_come);
  // Ends those that `came` (a workload's id) meets, at most one each, the oldest, and returns them.
  std::vector<Reservation> meet(const std::string& came);

  std::size_t size() const { return held_.size(); }
  const std::vector<Reservation>& all() const { return held_; }
  std::optional<Reservation> find(const std::string& id) const;
  // For the snapshot; the latter as they were asked for, without the room that was made.
  std::vector<model::PendingWorkload> pending() const;
  std::vector<model::PendingWorkload> requests() const;
  // Takes what a plan that was carried out has made room for, by id; those without an entry have none.
  void set_room(const std::map<std::string, model::Resources>& room);

 private:
  model::Result<void> save() const;
  std::vector<Reservation> remove_if(const std::function<bool(const Reservation&)>& ends);

  std::filesystem::path file_;
  std::vector<Reservation> held_;
};

// A berth.reservations/1 document: oldest first, each with its place by `places`, which is by request id and
// lacks those that have none.
std::string reservations_json(const std::string& host, double time, const Reservations& reservations,
                              const std::map<std::string, model::FittingBin>& places);

}  // namespace berth::daemon
