// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/placement_findings.h"
#include "model/snapshot.h"
#include "model/straggler_findings.h"
#include "os/clock.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// A place that is kept for an admitted workload until it comes.
struct Reservation {
  model::PendingWorkload request;
  double since = 0;                    // epoch seconds
  double hold_s = 0;                   // from then on
  std::vector<std::string> gpus = {};  // ids of the GPUs that its admission named
  model::CpuSet cpus = {};             // the vCPUs that it named; of latency-sensitive work
  std::string decision = {};           // the decision that admitted it

  double until() const { return since + hold_s; }
};

// Whether a request is the same as the held one, apart from the daemon's own additions.
bool is_same_request(model::PendingWorkload held, const model::PendingWorkload& request);

// Whether a request's id means a workload's id (its cgroup path). They are equal, or one of its directories
// has that name, with or without the suffix of a systemd unit.
bool is_meant(const std::string& request, const std::string& workload);
// A workload of this host. A user may give any name to a cgroup of its own, so a short id is compared with
// the components of `named_by_root` alone, the beginning of `id` that root named. A whole path is compared
// with all of `id`.
struct Arrival {
  std::string id;
  std::string named_by_root;
};
bool is_meant(const std::string& request, const Arrival& workload);

// Reservations, in the order of admission, each until its workload comes or its time is over. Kept in
// RUNTIME_DIR/reservations.json, so that a restart of the daemon breaks no promise.
class Reservations {
 public:
  static constexpr std::size_t kMost = 1000;

  // Reads an earlier daemon's file. A file that cannot be read counts as none, and `warning` has the reason.
  // `clock` is that of all times here; the file keeps them as seconds since the boot.
  Reservations(const std::filesystem::path& runtime_dir, os::Clock clock,
               std::optional<std::string>& warning);

  // Adds a reservation as the last one. One of the same id is replaced, and keeps its turn if the request is
  // the same. Error refused where there are kMost. Error io where it could not be written down; it is in
  // force.
  model::Result<void> hold(Reservation reservation);
  // Ends it; false where there is none.
  bool release(const std::string& id);
  // Ends those whose time is over, and returns them. Those whose id `has_come` are left to meet().
  std::vector<Reservation> expire(double now, const std::function<bool(const std::string&)>& has_come);
  // Ends those that `came` fulfils, at most one each, the oldest, and returns them.
  std::vector<Reservation> meet(const Arrival& came);

  std::size_t size() const { return held_.size(); }
  const std::vector<Reservation>& all() const { return held_; }
  std::optional<Reservation> find(const std::string& id) const;
  // For the snapshot. requests() has them as requested, without the room made.
  std::vector<model::PendingWorkload> pending() const;
  std::vector<model::PendingWorkload> requests() const;
  // Takes the room made by a plan that was carried out, by id. A request without an entry has none.
  void set_room(const std::map<std::string, model::Resources>& room);

 private:
  model::Result<void> save() const;
  std::vector<Reservation> remove_if(const std::function<bool(const Reservation&)>& ends);

  std::filesystem::path file_;
  os::Clock clock_;
  std::vector<Reservation> held_;
};

// A berth.reservations/1 document: oldest first, each with its place. `places` is by request id; a request
// without a place is not in it. `wall_ahead_s`: of Snapshot.
std::string reservations_json(const std::string& host, double time, double wall_ahead_s,
                              const Reservations& reservations,
                              const std::map<std::string, model::FittingBin>& places);

}  // namespace berth::daemon
