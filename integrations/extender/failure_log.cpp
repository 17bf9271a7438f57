// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/failure_log.h"

#include <utility>

#include <fmt/core.h>

namespace berth::extender {

namespace {

// A longer reason is cut. Its text may come from the client.
constexpr std::size_t kMaxWhyBytes = 1000;

const char* what(Failure failure) {
  switch (failure) {
    case Failure::tls:
      return "the client speaks TLS, and berthctl serve does not: urlPrefix in the scheduler's configuration "
             "must begin with http://";
    case Failure::malformed:
      return "the request is not HTTP/1.1 as berthctl serve reads it";
    case Failure::too_long:
      return "the request is refused";
    case Failure::too_much:
      return "the connection is closed, because clients sent too much at once";
    case Failure::too_slow:
      return "the connection is closed at its deadline";
    case Failure::hung_up:
      return "the client hung up";
    case Failure::connections:
      return "the connection is closed for a newer one, because too many are open";
    case Failure::descriptors:
      return "no connection can be opened (LimitNOFILE= of the service is the limit)";
    case Failure::question:
      return "the scheduler's question cannot be read";
    case Failure::snapshot:
      return "the snapshot is refused";
    case Failure::path:
      return "the request is refused";
    case Failure::internal:
      break;
  }
  return "the request failed";
}

}  // namespace

void FailureLog::add(Failure failure, const std::string& client, const std::string& why, double now_s) {
  std::string line =
      fmt::format("{}: {}{}{}", client, what(failure), why.empty() ? "" : ": ", why.substr(0, kMaxWhyBytes));
  Kind& kind = kinds_[static_cast<std::size_t>(failure)];
  ++kind.waiting;
  kind.last = std::move(line);
  say_waiting(now_s);
}

void FailureLog::say_waiting(double now_s) {
  for (Kind& kind : kinds_) {
    const double since_s = kind.said_s ? now_s - *kind.said_s : kPause_s;
    if (kind.waiting == 0 || since_s < kPause_s) continue;
    say_(kind.waiting == 1 ? kind.last
                           : fmt::format("{} (the last of {} failures of this kind in {:.0f} s)", kind.last,
                                         kind.waiting, since_s));
    kind = {.said_s = now_s, .waiting = 0, .last = {}};
  }
}

}  // namespace berth::extender
