// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/kubernetes/api.h"
#include "integrations/kubernetes/decide.h"
#include "integrations/kubernetes/failure.h"

#include <functional>
#include <optional>
#include <string>

namespace berth::kubernetes {

// Unless the taint changes, or an amount becomes 0 or more than that, two publications are this far apart.
inline constexpr double kLeastPause_s = 5;

// The pause between two attempts to take everything back; a server may ask for a longer one.
inline constexpr double kWithdrawalPause_s = 2;

// Keeps berth's members of one node object as they should be (docs/clusters.md). It makes a request at a
// change, and at each interval anyway: then it also mends what others have changed, and finds a new object of
// that name.
class Publisher {
 public:
  struct Settings {
    std::string node = {};
    Names names{"berth.org"};
    double interval_s = 60;
    double min_change = 0.01;
    bool taint = true;
    bool once = false;  // nothing is tried again
  };

  // `api` outlives the publisher.
  Publisher(Settings settings, Api& api, Surroundings surroundings);

  // Publishes if it is time. False after a failure.
  bool turn(const Berth& berth);
  // Removes all of berth's members from the object. After a failure it tries again, until `limit_s` have
  // passed since the first attempt. Between two attempts it calls pause() with the seconds to wait, and gives
  // up if that is false. False if the members may still be there.
  bool withdraw(double limit_s = 0, const std::function<bool(double)>& pause = nullptr);

 private:
  bool is_due(const Wanted& wanted, double now_s) const;
  std::optional<Failure> publish(const std::string& status, const std::string& closed);
  void succeeded(const Wanted& wanted, double now_s);
  void failed(const Failure& failure);
  void hear(const Berth& berth);

  Settings settings_;
  Api* api_;
  Surroundings surroundings_;

  std::optional<Wanted> published_;
  double published_s_ = 0;
  double next_s_ = 0;  // of the publication without a change
  std::string uid_;    // of the object
  std::string silence_;

  Backoff backoff_;
};

}  // namespace berth::kubernetes
