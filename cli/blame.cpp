// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/render.h"
#include "cli/workload_name.h"
#include "config/units.h"
#include "model/json_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

using Seconds = std::chrono::duration<double>;

// berthd loads the programs after the first question; an emulated host takes seconds for it.
constexpr Seconds kBetweenTries{0.2};
constexpr Seconds kLongestStart{60};
// berthd stops to count a while after the last question.
constexpr Seconds kBetweenQuestions{30};
constexpr double kShortest_s = 0.1;
constexpr double kLongest_s = 86400;
// Two times of the wall clock, which may be set a little, are one.
constexpr double kSame_s = 0.5;

struct BlameArguments {
  std::string service;
  std::string period = "10s";
};

// The waits of a document, by kind and name of the culprit.
using Waits = std::map<std::pair<std::string, std::string>, double>;

Waits waits_of(const Document& document) {
  Waits waits;
  for (const Document& culprit : list_of(document, "culprits"))
    waits[{text_of(culprit, "kind"), text_of(culprit, "name")}] += number_of(culprit, "ms").value_or(0);
  return waits;
}

// What came to `before` until `after`, with the time between as the member `seconds`.
Document growth(const Document& before, Document after) {
  // Waits of before are not in it if berthd has begun anew meanwhile.
  const double shift = number_of(before, "since").value_or(0) - number_of(after, "since").value_or(0);
  const bool same = std::abs(shift) < kSame_s;
  const Waits old = same ? waits_of(before) : Waits();
  std::vector<std::pair<double, const Document*>> grown;
  const Document::array_t culprits = list_of(after, "culprits");
  double all = 0;
  for (const Document& culprit : culprits) {
    const auto found = old.find({text_of(culprit, "kind"), text_of(culprit, "name")});
    const double ms = number_of(culprit, "ms").value_or(0) - (found == old.end() ? 0 : found->second);
    if (ms <= 0) continue;
    grown.emplace_back(ms, &culprit);
    all += ms;
  }
  std::stable_sort(grown.begin(), grown.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Document list = Document::array();
  for (const auto& [ms, culprit] : grown) {
    list.push_back(*culprit);
    list.back()["ms"] = ms;
  }
  after["culprits"] = std::move(list);
  after["waited_ms"] = all;
  after["seconds"] = number_of(after, "time").value_or(0) -
                     number_of(same ? before : after, same ? "time" : "since").value_or(0);
  return after;
}

struct Asked {
  DaemonClient daemon;
  std::string subject;
  Document answer;
};

Outcome<Document> ask(DaemonClient& daemon, const std::string& subject) {
  return parse_document(daemon.blame(subject), "answer about waits");
}

// Asks about a service of this name, else about the workload that is meant.
Outcome<Asked> begin(const std::string& given) {
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  auto answer = ask(*daemon, given);
  if (answer) return Asked{std::move(*daemon), given, std::move(*answer)};
  if (answer.error().exit != Exit::failed) return tl::unexpected(answer.error());
  auto addressed = address(given);
  if (!addressed) return tl::unexpected(addressed.error());
  answer = ask(addressed->daemon, addressed->id);
  if (!answer) return tl::unexpected(addressed->hinted(answer.error()));
  return Asked{std::move(addressed->daemon), addressed->id, std::move(*answer)};
}

// Waits until berthd counts.
Outcome<void> await_begin(Asked& asked) {
  const auto end = std::chrono::steady_clock::now() + kLongestStart;
  while (!number_of(asked.answer, "since")) {
    if (const auto why = text_of(asked.answer, "problem"); !why.empty())
      return problem(Exit::failed, "berthd cannot find the culprits: " + why);
    if (std::chrono::steady_clock::now() > end)
      return problem(Exit::failed, "berthd has not begun to count; berthctl status shows what it does");
    std::this_thread::sleep_for(kBetweenTries);
    auto answer = ask(asked.daemon, asked.subject);
    if (!answer) return tl::unexpected(answer.error());
    asked.answer = std::move(*answer);
  }
  return {};
}

Outcome<void> blame(Session& session, const BlameArguments& arguments) {
  const auto period_s = config::parse_duration_s(arguments.period);
  if (!period_s || *period_s < kShortest_s || *period_s > kLongest_s) {
    return problem(
        Exit::wrong_use,
        fmt::format("--for \"{}\": must be a duration from 100ms to 1d, as in \"10s\"", arguments.period));
  }
  auto asked = begin(arguments.service);
  if (!asked) return tl::unexpected(asked.error());
  if (auto begun = await_begin(*asked); !begun) return begun;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(*period_s));
  Outcome<Document> last = asked->answer;
  for (auto left = Seconds(*period_s); left.count() > 0; left = end - std::chrono::steady_clock::now()) {
    std::this_thread::sleep_for(std::min<Seconds>(left, kBetweenQuestions));
    last = ask(asked->daemon, asked->subject);
    if (!last) return tl::unexpected(last.error());
  }
  const Document document = growth(asked->answer, std::move(*last));
  if (session.json) {
    session.out << model::json_text(document) << "\n";
  } else {
    render_blame(session.out, document, session.style);
  }
  return {};
}

}  // namespace

Action declare_blame(const Options& options) {
  const auto arguments = std::make_shared<BlameArguments>();
  options.footer("Waits below 10 µs do not count. berthctl(1) says how long berthd goes on.");
  options.option("service", arguments->service, "A service, or the id of a workload or its last component")
      .required()
      .type_name("SERVICE");
  options.option("--for", arguments->period, "How long").type_name("TIME").show_default();
  return [arguments](Session& session) { return blame(session, *arguments); };
}

}  // namespace berth::cli
