// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/learn/learner.h"
#include "daemon/ledger/journal_shares.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/observe/observer.h"
#include "daemon/observe/used_shares.h"
#include "daemon/setup.h"
#include "model/error.h"
#include "model/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The figures that berthd keeps from tick to tick. The used shares of the last day, the samples of running
// workloads and the services' memory outlive a restart.
class Learned {
 public:
  // Reads the state files and hands the old samples to the observer. Logs each file that is lost. Both
  // arguments outlive this object.
  Learned(const Setup& setup, Observer& observer);

  // Gives the observer the figures for the next snapshot.
  void show();
  // Takes the figures of a plan; now and then it saves the used shares in the background. Error io of the
  // save before.
  model::Result<void> take(const model::Plan& plan);
  // Takes the pins that were changed between two ticks, at `now`, after the observer's snapshot was made.
  void note_moves(const std::vector<LogEntry>& done, double now);
  // Learns the interference models from the observer's snapshot of what really holds, and gives the observer
  // the models in use. Logs what operators should know, as far as `may_announce` permits. Now and then it
  // saves the sums. Error io of the save before. With `learns` false the models stay as they are: in a trial
  // the settings change again and again, and the ticks between two of them are of neither.
  model::Result<void> learn(const MayAnnounce& may_announce, bool learns);
  Learner& models() { return models_; }
  // Reads the priors of the configuration again.
  void follow_settings();
  // Saves everything, and waits for the disk. Logs what cannot be saved.
  void save();

 private:
  const Setup& setup_;
  Observer& observer_;
  std::optional<std::string> warning_;  // of reading the used shares
  UsedShares used_shares_;
  std::vector<std::string> faults_;  // of reading the learned profiles
  Learner models_;
  std::uint64_t shown_ = 0;  // the generation of models that the observer has
};

}  // namespace berth::daemon
