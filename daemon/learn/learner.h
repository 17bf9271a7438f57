// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/learning.h"
#include "model/snapshot.h"
#include "os/background_save.h"
#include "policies/interference/learning/learn.h"
#include "policies/interference/learning/observations.h"
#include "policies/interference/settings.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::daemon {

// Learns the interference models of the services here, tick by tick, and knows which of them are in use
// (docs/decisions/learning.md). The sums are kept in STATE_DIR/profiles.json, over restarts and boots.
class Learner {
 public:
  static constexpr double kJudge_s = 60;  // how often models change
  static constexpr double kSave_s = 300;  // how often the sums are saved

  // Reads an earlier daemon's sums, and the priors: the files *.json of `priors_dir`. A file that cannot be
  // read counts as none. Adds to `warnings` the reasons.
  Learner(const std::filesystem::path& state_dir, std::filesystem::path priors_dir,
          std::vector<std::string>& warnings);
  // Reads the priors again.
  void read_priors(std::vector<std::string>& warnings);

  // A message for operators.
  struct Message {
    std::string workload;  // that gave rise to it
    std::string text;
  };
  // Learns from the snapshot of a tick.
  std::vector<Message> take(const model::Snapshot& snapshot, const policies::InterferenceSettings& settings);
  // The pin of a workload in the snapshot, which was made before, changed at `now`. The next tick counts it
  // as a neighbour at both places.
  void note_move(const model::Snapshot& snapshot, const std::string& workload, double now) {
    policies::add_move(moves_, snapshot, workload, now);
  }
  // A tick is over.
  void forget_moves() { moves_.clear(); }
  // The services that have learned sums, for the next snapshots. generation() changes when they do.
  const std::map<std::string, model::ServiceProfile>& services() const { return services_; }
  std::uint64_t generation() const { return generation_; }

  // A berth.profiles/1 document: the sums learned or imported here, without priors.
  std::string profiles_json(const std::string& host) const;
  // A berth.models/1 document: of these sums and the priors.
  std::string models_json(const policies::InterferenceSettings& settings) const;

  // Adds the sums of a berth.profiles/1 document. Error invalid_input; error refused where there would be too
  // many profiles.
  model::Result<void> import(const std::string& text);
  // Forgets the learned and the imported sums of a service, and stops using its prior. Error gone: the
  // service has none of them.
  model::Result<void> forget(const std::string& service);

  // Whether anything was learned, and long enough since the last time.
  bool wants_save(double now) const { return changed_ && now >= saved_at_ + kSave_s; }
  // Replaces the file at once, and waits until it is on the disk. Error io.
  model::Result<void> save(const std::string& host);
  // The same on a thread of its own. Returns what became of the save before. Does nothing while that one
  // still goes on.
  model::Result<void> save_in_background(const std::string& host, double now);

 private:
  void learn(const model::ProfileKey& key, const std::vector<model::Observation>& tick,
             const policies::InterferenceSettings& settings, std::vector<Message>& messages);
  void say_set_aside(const model::ProfileKey& key, const std::vector<policies::SetAside>& set_aside,
                     std::vector<Message>& messages);
  void make_room();
  // The next tick judges and saves the sums.
  void take_at_once();
  void judge(const policies::InterferenceSettings& settings);

  os::BackgroundSave file_;
  std::filesystem::path priors_dir_;
  policies::Observations observations_;
  policies::Moves moves_;  // since the last tick
  model::Profiles own_;
  model::Profiles priors_;
  std::map<std::string, model::ServiceProfile> services_;
  std::uint64_t generation_ = 0;
  std::set<model::ProfileKey> said_;  // whose observations were set aside at the last tick
  bool judged_all_ = false;           // nothing was learned since
  double judged_at_ = 0;
  bool changed_ = false;
  double saved_at_ = 0;
};

}  // namespace berth::daemon
