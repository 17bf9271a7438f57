// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/publisher.h"

#include "integrations/kubernetes/node.h"
#include "model/count_text.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace berth::kubernetes {

namespace {

// Another writer of the object comes between rarely, and not again and again.
constexpr int kMostConflicts = 3;
// Hosts that began at the same time do not stay together.
constexpr double kIntervalSpread = 0.1;

const char* hint_of(int status) {
  switch (status) {
    case kUnauthorized:
      return " (the credentials are refused)";
    case kForbidden:
      return " (the credentials are not enough: see the manifest rbac.yaml; a service account must be in the "
             "namespace berth-kube)";
    case kNotFound:
      return " (is the node registered, and --node its name?)";
    case kUnprocessable:
      // The policy in rbac.yaml.
      return " (the domain must be the one in rbac.yaml, and the token or the certificate must be of this "
             "node)";
    default:
      return "";
  }
}

}  // namespace

Publisher::Publisher(Settings settings, Api& api, Surroundings surroundings)
    : settings_(std::move(settings)), api_(&api), surroundings_(std::move(surroundings)) {}

std::optional<Failure> Publisher::publish(const std::string& status, const std::string& closed) {
  const std::string path = "/api/v1/nodes/" + settings_.node;
  Answer answer;
  for (int attempt = 0; attempt < kMostConflicts; ++attempt) {
    answer = api_->patch(path + "/status", status);
    if (answer.status == kConflict) continue;
    if (!is_good(answer)) return failure_of(answer, hint_of(answer.status));
    const auto node = parse_node(answer.body, settings_.node, settings_.names.taint);
    if (!node) {
      return Failure{.cause = "answer",
                     .message = "cannot read the API server's answer: " + node.error().message(),
                     .retry_after_s = {}};
    }
    if (!uid_.empty() && node->uid != uid_)
      surroundings_.say(Level::info, "the node object was made anew, and has the figures again");
    uid_ = node->uid;
    if (!settings_.taint) return std::nullopt;
    const auto patch = taint_patch(*node, settings_.names.taint, closed);
    if (!patch) return std::nullopt;
    answer = api_->patch(path, *patch);
    if (is_good(answer)) return std::nullopt;
    if (answer.status != kConflict) return failure_of(answer, hint_of(answer.status));
  }
  return failure_of(answer, hint_of(answer.status));
}

void Publisher::succeeded(const Wanted& wanted, double now_s) {
  if (const unsigned failures = backoff_.succeeded(); failures > 0) {
    surroundings_.say(Level::info,
                      fmt::format("published again after {}", model::count_text(failures, "failed attempt")));
  }
  if (!published_ || is_urgent(wanted, *published_))
    surroundings_.say(Level::info, fmt::format("published {}", describe(wanted)));
  published_ = wanted;
  published_s_ = now_s;
  const double spread = kIntervalSpread * (2 * surroundings_.random() - 1);
  next_s_ = now_s + settings_.interval_s * (1 + spread);
}

void Publisher::failed(const Failure& failure) {
  const auto wait_s = backoff_.failed(failure, surroundings_);
  if (!wait_s) return;
  const std::string further =
      settings_.once ? "" : fmt::format(", and tries again, {:.0f} s apart at most", *wait_s);
  surroundings_.say(Level::warning, fmt::format("cannot publish{}: {}", further, failure.message));
}

bool Publisher::is_due(const Wanted& wanted, double now_s) const {
  if (!published_ || now_s >= next_s_ || is_urgent(wanted, *published_)) return true;
  return now_s >= published_s_ + kLeastPause_s && is_news(wanted, *published_, settings_.min_change);
}

void Publisher::hear(const Berth& berth) {
  // An age in the words would change at each turn.
  if (berth.silence.empty() == silence_.empty()) return;
  silence_ = berth.silence;
  if (silence_.empty())
    surroundings_.say(Level::info, "berthd publishes its state again");
  else
    surroundings_.say(Level::warning, silence_ + "; best-effort work gets nothing meanwhile");
}

bool Publisher::turn(const Berth& berth) {
  hear(berth);
  const Wanted wanted = wanted_of(berth, settings_.taint);
  const double now_s = surroundings_.clock();
  if (backoff_.waits(now_s) || !is_due(wanted, now_s)) return true;
  const auto failure = publish(status_patch(wanted, settings_.names), wanted.closed);
  if (!failure) {
    succeeded(wanted, surroundings_.clock());
    return true;
  }
  // The object may have the new amounts already, or not.
  published_.reset();
  failed(*failure);
  return false;
}

bool Publisher::withdraw(double limit_s, const std::function<bool(double)>& pause) {
  const double end_s = surroundings_.clock() + limit_s;
  std::string cause;
  for (;;) {
    const auto failure = publish(status_removal(settings_.names), "");
    if (!failure) {
      surroundings_.say(Level::info, "took the published figures back");
      return true;
    }
    const double wait_s = std::max(kWithdrawalPause_s, failure->retry_after_s.value_or(0));
    const bool again = surroundings_.clock() + wait_s < end_s && pause;
    if (again && failure->cause != cause) {
      surroundings_.say(
          Level::warning,
          fmt::format("cannot take the published figures back, and tries again: {}", failure->message));
    }
    cause = failure->cause;
    if (again && pause(wait_s)) continue;
    surroundings_.say(
        Level::warning,
        fmt::format("cannot take the published figures back: {}. They stay on the node {}, and become "
                    "wrong: call `berth-kube --withdraw` once the API server answers",
                    failure->message, settings_.node));
    return false;
  }
}

}  // namespace berth::kubernetes
