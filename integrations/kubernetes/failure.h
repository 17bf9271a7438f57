// SPDX-License-Identifier: Apache-2.0
// Requests that failed, and the time until the next attempt.
#pragma once

#include "integrations/kubernetes/api.h"

#include <functional>
#include <optional>
#include <string>

namespace berth::kubernetes {

enum class Level { info, warning };

// The part of the world besides the API server that a test replaces.
struct Surroundings {
  std::function<double()> clock;   // seconds that never step
  std::function<double()> random;  // 0 to 1, without 1
  std::function<void(Level, const std::string&)> say;
};

// The longest wait after failures, unless the server asks for a longer one.
inline constexpr double kMostBackoff_s = 60;

inline constexpr int kUnauthorized = 401;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;
inline constexpr int kConflict = 409;
inline constexpr int kUnprocessable = 422;
inline constexpr int kTooManyRequests = 429;

bool is_good(const Answer& answer);

struct Failure {
  std::string cause;  // it is said again when this changes
  std::string message;
  std::optional<double> retry_after_s;
};

// Of an answer that is not good. `hint` follows the server's own words, as " (the token has expired)".
Failure failure_of(const Answer& answer, const std::string& hint);

// Doubles the wait with each failure in a row.
class Backoff {
 public:
  bool waits(double now_s) const { return failures_ > 0 && now_s < retry_s_; }
  // Returns the longest wait between attempts if the failure has another cause than the one before.
  std::optional<double> failed(const Failure& failure, const Surroundings& surroundings);
  // Returns the number of failures since the last success.
  unsigned succeeded();

 private:
  unsigned failures_ = 0;  // since the last success
  double retry_s_ = 0;     // no request before
  std::string cause_;
};

}  // namespace berth::kubernetes
