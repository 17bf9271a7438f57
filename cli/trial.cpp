// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "cli/input.h"
#include "cli/render_trial.h"
#include "cli/trial_host.h"
#include "config/config.h"
#include "config/trial_settings.h"
#include "config/units.h"
#include "model/json.h"
#include "model/json_text.h"
#include "os/clock.h"
#include "trial/driver.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// Between the last window, the choice of the better side and its keeping; the choice may take long on a busy
// host.
constexpr double kKeepLease_s = 600;

struct TrialArguments {
  std::string a;
  std::string b;
  std::string length;
  std::string window;
  std::optional<std::string> metric;
  std::optional<std::string> keep;
  std::uint32_t seed = 0;
  bool seeded = false;
};

// The text of a side. Its own faults are told before berthd is asked, with the name of the file.
Outcome<std::string> read_side(Session& session, const std::string& file) {
  auto text = read_input(file, config::kMaxTrialBytes);
  if (!text) return text;
  const auto settings = config::parse(*text, input_name(file));
  if (!settings) return problem(settings.error());
  warn(session.err, settings->warnings);
  return text;
}

Outcome<trial::Pace> pace_of(DaemonClient& daemon, const TrialArguments& arguments) {
  const auto status = parse_document(daemon.status(), "status");
  if (!status) return tl::unexpected(status.error());
  const double tick_s =
      std::clamp(number_of(member(*status, "tick"), "interval_s").value_or(1), 0.01, 3600.0);
  const double window_s = arguments.window.empty() ? 0 : *config::parse_duration_s(arguments.window);
  auto pace = trial::make_pace(*config::parse_duration_s(arguments.length), window_s, tick_s);
  if (!pace) return problem(pace.error());
  return *pace;
}

// Puts everything back, or keeps `side`.
void end_trial(DaemonClient& daemon, std::optional<trial::Side> side, ShownTrial& shown) {
  const auto ended = daemon.end_trial(side.has_value());
  if (ended) {
    shown.kept = side;
  } else if (ended.error().exit == Exit::unreachable) {
    shown.not_undone = "It is not known yet whether the settings are as before (" + ended.error().message +
                       "); a berthd that runs puts them back by itself";
  } else if (side) {
    shown.not_kept = ended.error().message;
  }
}

// Keeps the better side, where there is one.
void keep_better(DaemonClient& daemon, DaemonHost& host, const std::string& figure, ShownTrial& shown) {
  auto better = trial::better_side(*shown.result, *trial::parse_figure(figure));
  if (!better) shown.not_kept = fmt::format("no difference is shown in {} of the host", figure);
  if (better && !host.use(*better, kKeepLease_s)) {
    shown.not_kept = host.problem()->message;
    better.reset();
  }
  end_trial(daemon, better, shown);
}

Outcome<void> run_trial(Session& session, DaemonClient& daemon, const TrialArguments& arguments,
                        const trial::Pace& pace, ShownTrial shown) {
  DaemonHost host(daemon, session.err, arguments.metric);
  const trial::Measured measured = trial::run(host, pace, shown.seed);
  host.clear();
  const bool whole = !measured.failure && !measured.interrupted;
  if (arguments.keep && !whole) shown.not_kept = "the trial did not end by itself";
  // The comparison takes time, in which no side stays in force without need, and no lease runs out. A daemon
  // that refuses here refuses again below.
  if (arguments.keep && whole) {
    (void)host.use(measured.order.back()[1], kKeepLease_s);
  } else {
    end_trial(daemon, std::nullopt, shown);
  }
  const trial::Result result = trial::evaluate(measured, shown.seed);
  shown.measured = &measured;
  shown.result = &result;
  if (arguments.keep && whole) keep_better(daemon, host, *arguments.keep, shown);
  if (!measured.failure || !measured.blocks.empty()) {
    if (session.json) {
      session.out << model::json_text(trial_document(shown)) << "\n";
    } else {
      render_trial(session.out, shown, session.style);
    }
  }
  if (!measured.failure) return {};
  return host.problem() ? tl::unexpected(*host.problem()) : problem(*measured.failure);
}

Outcome<void> trial_command(Session& session, const TrialArguments& arguments) {
  const auto a = read_side(session, arguments.a);
  if (!a) return tl::unexpected(a.error());
  const auto b = read_side(session, arguments.b);
  if (!b) return tl::unexpected(b.error());
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto pace = pace_of(*daemon, arguments);
  if (!pace) return tl::unexpected(pace.error());
  const auto text = daemon->snapshot();
  if (!text) return tl::unexpected(text.error());
  const auto snapshot = model::parse_snapshot(*text);
  if (!snapshot) return problem(snapshot.error().context("the daemon's snapshot"));
  if (const auto why = trial::why_useless(snapshot->snapshot, arguments.metric.has_value()))
    return problem(Exit::refused, *why);
  const auto begun = parse_document(daemon->begin_trial(*a, *b), "beginning of the trial");
  if (!begun) return tl::unexpected(begun.error());
  ShownTrial shown;
  shown.files = {arguments.a, arguments.b};
  shown.differs = list_of(*begun, "differs");
  shown.seed = arguments.seeded ? arguments.seed : std::random_device()();
  session.err << fmt::format(
                     "{} windows of {:g} s, until {}; seed {}; Ctrl-C ends it with the result so far\n",
                     2 * pace->blocks, pace->window_s, format_time(os::epoch_s() + pace->length_s()),
                     shown.seed)
              << std::flush;
  return run_trial(session, *daemon, arguments, *pace, std::move(shown));
}

std::string check_duration(const std::string& text) {
  const auto seconds = config::parse_duration_s(text);
  if (!seconds) return seconds.error().message();
  return *seconds > 0 ? "" : "a trial takes some time";
}

std::string check_figure(const std::string& text) {
  if (trial::parse_figure(text)) return "";
  std::string known;
  for (const auto figure : trial::kFigures)
    known += std::string(known.empty() ? "" : ", ") + trial::to_string(figure);
  return fmt::format("\"{}\": there are {}", text, known);
}

}  // namespace

Action declare_trial(const Options& options) {
  const auto arguments = std::make_shared<TrialArguments>();
  options.footer("Reads each FILE like a last drop-in of berth.toml. Puts everything back.");
  options.option("--a", arguments->a, "Settings of one side").required().type_name("FILE");
  options.option("--b", arguments->b, "Settings of the other side").required().type_name("FILE");
  options.option("--for", arguments->length, "Time that the trial takes")
      .required()
      .type_name("DURATION")
      .check(check_duration);
  options.option("--window", arguments->window, "Time of one window")
      .type_name("DURATION")
      .check(check_duration)
      .show_default("a thirtieth, 20 s to 60 s");
  options.option("--metric", arguments->metric, "Compare a number that this command prints in each window")
      .type_name("COMMAND");
  options.option("--keep", arguments->keep, "Keep the side that is better in this figure of the host")
      .type_name("FIGURE")
      .check(check_figure);
  const Option seed =
      options.option("--seed", arguments->seed, "Of the order of the windows").type_name("NUMBER");
  return [arguments, seed](Session& session) {
    arguments->seeded = seed.given();
    return trial_command(session, *arguments);
  };
}

}  // namespace berth::cli
