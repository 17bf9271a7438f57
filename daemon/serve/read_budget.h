// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include <sys/types.h>

namespace berth::daemon {

// Limits the work that berth does on the loop for users that ask all the time. It is counted in steps of
// about 0.1 ms. Each user has kOfUser steps a second, and all users together kOfAll. Root has no limit.
class ReadBudget {
 public:
  static constexpr double kOfUser = 500;
  static constexpr double kOfAll = 1500;
  // Beside that, for calls whose user is not known yet.
  static constexpr double kUnasked = 250;

  // Takes `steps` for a call at `now`, monotonic seconds. A call never takes more than a second's share.
  // Returns the seconds after which to ask again if they are not left; nullopt if they were taken.
  std::optional<double> take(uid_t user, double steps, double now);
  // Takes `steps` for a call whose user is not known. False if they are not left: then the user has to be
  // looked up, and has a share of its own.
  bool take_unasked(double steps, double now);

 private:
  // Fills up over one second.
  struct Bucket {
    double left = 0;
    double at = 0;
  };
  static void fill(Bucket& bucket, double size, double now);

  Bucket all_{kOfAll, 0};
  Bucket unasked_{kUnasked, 0};
  std::map<uid_t, Bucket> users_;  // those that may not have all of their share
};

}  // namespace berth::daemon
