// SPDX-License-Identifier: Apache-2.0
// The time after which a pod is moved, against the sentences of man/berth-kube.8, said again.
#include "integrations/kubernetes/reporter.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::kubernetes {
namespace {

constexpr double kAfter_s = 10;

Answer answer(int status, std::string body) {
  return {.status = status, .body = std::move(body), .retry_after_s = {}, .fault_kind = {}, .fault = {}};
}

// One pod, and the number of its evictions.
class OnePod : public Api {
 public:
  Answer patch(const std::string&, const std::string&) override { return {}; }
  Answer create(const std::string&, const std::string&) override {
    ++evictions;
    return answer(201, "{}");
  }
  Answer list(const std::string&) override {
    return answer(200, R"({"kind":"PodList","metadata":{},"items":[)"
                       R"({"metadata":{"name":"a","namespace":"b","uid":"uid-a"}}]})");
  }
  int evictions = 0;
};

enum class Seen { silence, no_need, same, fresh };

// Each state of the row has the need, is newer than the one before, and comes without a gap. The row is as
// long as the wanted time, and two of its states were written after that.
RC_GTEST_PROP(KubernetesReporterProperty, EvictsAfterARowOfStatesThatMove, ()) {
  OnePod api;
  double now_s = 1000;
  Reporter reporter({.node = "n1", .events = false, .evict = true, .evict_after_s = kAfter_s}, api,
                    {.clock = [&now_s] { return now_s; },
                     .random = [] { return 0.5; },
                     .say = [](Level, const std::string&) {}});
  std::vector<double> row;  // the times at which its states were seen
  std::optional<double> last;
  for (int turn = 0; turn < 60 && api.evictions == 0; ++turn) {
    now_s += *rc::gen::weightedElement<double>({{20, 1}, {1, kLatestState_s + 1}});
    const Seen seen = *rc::gen::weightedElement<Seen>(
        {{1, Seen::silence}, {1, Seen::no_need}, {4, Seen::same}, {30, Seen::fresh}});
    Berth berth{.state = std::nullopt, .silence = "berthd does not run"};
    bool is_fresh = false;
    if (seen != Seen::silence) {
      berth.silence.clear();
      berth.state.emplace();
      berth.state->time = seen == Seen::same ? last.value_or(now_s) : now_s;
      berth.state->departures = {{.kind = model::Departure::Kind::relocate,
                                  .time = 900,
                                  .workload = "kubepods/besteffort/poduid-a/1",
                                  .decision = {},
                                  .reason = "because",
                                  .wanted = seen != Seen::no_need}};
      is_fresh = !last || berth.state->time != *last;
      last = berth.state->time;
    }
    reporter.turn(berth);

    if (!row.empty() && now_s - row.back() > kLatestState_s) row.clear();
    if (seen == Seen::silence || seen == Seen::no_need)
      row.clear();
    else if (is_fresh)
      row.push_back(now_s);
    const auto after =
        std::count_if(row.begin(), row.end(), [&](double at_s) { return at_s - row.front() >= kAfter_s; });
    RC_ASSERT((api.evictions == 1) == (is_fresh && after >= 2));
  }
}

}  // namespace
}  // namespace berth::kubernetes
