// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/failure.h"

#include "integrations/kubernetes/node.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace berth::kubernetes {

namespace {

constexpr double kFirstBackoff_s = 1;
constexpr unsigned kMostDoublings = 6;

}  // namespace

bool is_good(const Answer& answer) { return answer.status >= 200 && answer.status <= 299; }

Failure failure_of(const Answer& answer, const std::string& hint) {
  if (answer.status == 0) return {.cause = answer.fault_kind, .message = answer.fault, .retry_after_s = {}};
  const std::string words = message_of(answer.body);
  return {.cause = std::to_string(answer.status),
          .message = fmt::format("the API server answers {}{}{}{}", answer.status, words.empty() ? "" : ": ",
                                 words, hint),
          .retry_after_s = answer.retry_after_s};
}

std::optional<double> Backoff::failed(const Failure& failure, const Surroundings& surroundings) {
  const double doubled = std::ldexp(kFirstBackoff_s, static_cast<int>(std::min(failures_, kMostDoublings)));
  double wait_s = std::min(doubled, kMostBackoff_s) * (0.5 + surroundings.random() / 2);
  // All hosts are told the same time.
  if (failure.retry_after_s)
    wait_s = std::max(wait_s, *failure.retry_after_s * (1 + surroundings.random() / 2));
  ++failures_;
  retry_s_ = surroundings.clock() + wait_s;
  if (failure.cause == cause_) return std::nullopt;
  cause_ = failure.cause;
  return std::max(kMostBackoff_s, wait_s);
}

unsigned Backoff::succeeded() {
  cause_.clear();
  return std::exchange(failures_, 0U);
}

}  // namespace berth::kubernetes
