// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::daemon {

// Tells when workloads that appear are placed before the next tick, so that their pins are in force before it
// matters (docs/ticks.md). Times are monotonic seconds.
class Arrivals {
 public:
  // Workloads that appear within this time are placed together, for instance the containers of a pod. It also
  // lets a runtime complete the settings of a container that has its first process.
  static constexpr double kGather_s = 0.03;
  // So many placements may follow each other. Then there is one for each interval between two ticks. Users
  // have as many of their own: what they make and remove without end delays no service of root.
  static constexpr double kMost = 8;

  // A workload appeared; `by_user`: in the part of the tree that a user may fill. Returns whether a placement
  // is to come kGather_s from now for it. If not, one is on its way already, or the next tick places it.
  bool add(bool by_user, double now_s, double interval_s);
  // Whether a placement is to come.
  bool is_due() const { return due_; }
  // A tick places all that appeared so far.
  void clear() { due_ = false; }

 private:
  struct Allowance {
    double left = kMost;
    double at_s = 0;

    bool take(double now_s, double interval_s);
  };

  Allowance of_root_;
  Allowance of_users_;
  bool due_ = false;
};

}  // namespace berth::daemon
