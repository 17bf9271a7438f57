// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "cli/end_signals.h"
#include "cli/input.h"
#include "cli/progress_bar.h"
#include "cli/render_observed.h"
#include "config/units.h"
#include "model/count_text.h"
#include "model/json.h"
#include "model/json_text.h"
#include "model/text.h"
#include "model/trace.h"
#include "model/utc_text.h"
#include "os/clock.h"
#include "replay/observed.h"
#include "trace/recorder.h"
#include "trace/ticks.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

using Clock = std::chrono::steady_clock;

// The next tick is looked for a little before its time, and then again until it is there.
constexpr double kEarly = 0.98;
constexpr double kAgain = 0.1;
constexpr double kShortestWait_s = 0.02;

struct RecordArguments {
  std::string file;
  std::string duration;
  bool observations = false;
};

// "berth-HOST-20261121T101110Z.trace.zst", with the letters, digits, "." and "-" of the host's name.
std::string default_file(const std::string& host, double now, const char* ending) {
  std::string name;
  for (const char c : host) {
    const bool plain = model::is_letter_or_digit(c) || c == '-' || (c == '.' && !name.empty());
    if (plain && name.size() < 64) name += c;
  }
  return fmt::format("berth-{}{}{}{}", name, name.empty() ? "" : "-", model::utc_text(now, "%Y%m%dT%H%M%SZ"),
                     ending);
}

// The ticks of the daemon, and what its learning takes for a domain, by its own account.
struct Pace {
  double interval_s = 1;
  int history = 60;
  model::DomainKind shared_domain = model::DomainKind::llc;
};

Outcome<Pace> ask_pace(DaemonClient& daemon) {
  const auto status = parse_document(daemon.status(), "status");
  if (!status) return tl::unexpected(status.error());
  Pace pace;
  pace.interval_s = std::clamp(number_of(member(*status, "tick"), "interval_s").value_or(1), 0.01, 3600.0);
  pace.history = static_cast<int>(std::clamp(number_of(member(*status, "sampling"), "history").value_or(60),
                                             1.0, double{model::kMaxHistory}));
  pace.shared_domain = shared_domain_of(*status);
  return pace;
}

struct Question {
  std::string text;
  model::Snapshot snapshot;
};

// `since`: nullopt for all samples.
Outcome<Question> ask_snapshot(DaemonClient& daemon, std::optional<double> since) {
  auto text = since ? daemon.snapshot_since(*since) : daemon.snapshot();
  if (!text) return tl::unexpected(text.error());
  auto parsed = model::parse_snapshot(*text);
  if (!parsed) return problem(parsed.error().context("the daemon's snapshot"));
  if (model::trace_line_of(*text) != model::TraceLine::snapshot || text->find('\n') != std::string::npos)
    return problem(Exit::failed, "the daemon's snapshot is of another form: use the berthctl of this berthd");
  return Question{std::move(*text), std::move(parsed->snapshot)};
}

// Takes the lines of a recording.
class Destination {
 public:
  Destination() = default;
  virtual ~Destination() = default;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  virtual model::Result<void> add(std::string_view line) = 0;
  // The last call.
  virtual model::Result<void> end() = 0;
  // What there is so far, for a bar.
  virtual std::string so_far() const = 0;
  virtual void tell(Session& session, const std::string& file, std::uint64_t ticks) const = 0;
};

// A trace.
class Trace : public Destination {
 public:
  explicit Trace(const Output& output)
      : writer_([&output](std::string_view bytes) { return output.write(bytes); }) {}

  model::Result<void> add(std::string_view line) override { return writer_.add(line); }
  model::Result<void> end() override { return writer_.end(); }
  std::string so_far() const override { return format_bytes(writer_.bytes()); }
  void tell(Session& session, const std::string& file, std::uint64_t ticks) const override {
    const std::uint64_t bytes = writer_.bytes();
    if (session.json && file != "-") {
      session.out << model::json_text(
                         {{"schema", "berth.record/1"}, {"file", file}, {"ticks", ticks}, {"bytes", bytes}})
                  << "\n";
      return;
    }
    std::ostream& out = file == "-" ? session.err : session.out;
    out << fmt::format("{} in {}, {}\n", model::count_text(ticks, "tick"),
                       file == "-" ? "standard output" : printable(file), format_bytes(bytes));
  }

 private:
  trace::Writer writer_;
};

// Observations. They are made of the lines that a trace would have, so a trace yields the same ones later.
class ObservationLines : public Destination {
 public:
  // `pace` may change.
  ObservationLines(const Output& output, const Pace& pace)
      : output_(output), pace_(pace), ticks_(pace.history) {}

  model::Result<void> add(std::string_view line) override {
    const auto kind = model::trace_line_of(line);
    if (kind != model::TraceLine::snapshot && kind != model::TraceLine::change) return {};
    if (auto taken = ticks_.take(*kind, line); !taken) return taken;
    return output_.write(observation_lines(observed_.take(ticks_.snapshot(), pace_.shared_domain)));
  }
  model::Result<void> end() override { return {}; }
  std::string so_far() const override { return fmt::format("{} observations", observed_.observations()); }
  void tell(Session& session, const std::string& file, std::uint64_t) const override {
    tell_observed(session, observed_, file, std::nullopt);
  }

 private:
  const Output& output_;
  const Pace& pace_;
  trace::Ticks ticks_;
  replay::Observed observed_;
};

class Recording {
 public:
  Recording(DaemonClient& daemon, trace::Recorder& recorder, Pace& pace)
      : daemon_(daemon), recorder_(recorder), pace_(pace) {}

  // Takes the present tick, where it is new. Returns the time to wait for the next one.
  Outcome<double> take() {
    const bool whole = recorder_.wants_whole(recorder_.ticks() == 0 ? 0 : os::epoch_s());
    if (whole && recorder_.ticks() > 0) {
      const auto pace = ask_pace(daemon_);
      if (!pace) return tl::unexpected(pace.error());
      pace_.interval_s = pace->interval_s;
      pace_.shared_domain = pace->shared_domain;
    }
    auto added = add(whole);
    if (added && *added == trace::Recorder::Added::odd && !whole) added = add(true);
    if (!added) return tl::unexpected(added.error());
    if (*added == trace::Recorder::Added::odd)
      return problem(Exit::failed, "the clock was set back, so the trace ends here");
    const bool is_new = *added == trace::Recorder::Added::tick;
    return std::max(pace_.interval_s * (is_new ? kEarly : kAgain), kShortestWait_s);
  }

 private:
  Outcome<trace::Recorder::Added> add(bool whole) {
    auto answer = ask_snapshot(daemon_, whole ? std::nullopt : std::optional(recorder_.last_time()));
    if (!answer) return tl::unexpected(answer.error());
    auto added = recorder_.add(std::move(answer->snapshot), answer->text, whole);
    if (!added) return problem(added.error());
    return *added;
  }

  DaemonClient& daemon_;
  trace::Recorder& recorder_;
  Pace& pace_;
};

// Records until the time is over, a signal comes, or something fails. The file is then ended properly, if it
// can be written at all.
Outcome<void> record_into(Session& session, DaemonClient& daemon, const std::string& file,
                          Destination& destination, Pace& pace, const model::TraceHeader& header,
                          double most_s) {
  const EndSignals signals;
  auto recorder =
      trace::Recorder::begin([&destination](std::string_view line) { return destination.add(line); }, header);
  if (!recorder) return problem(recorder.error());
  Recording recording(daemon, *recorder, pace);
  ProgressBar bar(session.err, STDERR_FILENO);
  const auto begun = Clock::now();
  Outcome<void> outcome;
  for (;;) {
    const auto wait_s = recording.take();
    if (!wait_s) {
      outcome = tl::unexpected(wait_s.error());
      break;
    }
    if (bar.is_due())
      bar.show(fmt::format("{} ticks, {}; Ctrl-C ends", recorder->ticks(), destination.so_far()));
    const double left_s = most_s - std::chrono::duration<double>(Clock::now() - begun).count();
    if (left_s <= 0 || signals.wait(std::min(*wait_s, left_s)) || left_s <= *wait_s) break;
  }
  bar.clear();
  auto ended = recorder->end();
  if (ended) ended = destination.end();
  if (!ended && outcome) outcome = problem(ended.error());
  if (outcome || recorder->ticks() > 0) destination.tell(session, file, recorder->ticks());
  return outcome;
}

Outcome<void> record(Session& session, const RecordArguments& arguments) {
  const double most_s = arguments.duration.empty() ? std::numeric_limits<double>::infinity()
                                                   : *config::parse_duration_s(arguments.duration);
  if (arguments.file == "-" && !arguments.observations && isatty(STDOUT_FILENO) != 0)
    return problem(Exit::wrong_use, "a trace is no text for a terminal; give a file with -o");
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  auto pace = ask_pace(*daemon);
  if (!pace) return tl::unexpected(pace.error());
  // Its host, and a failure before there is any file.
  const auto first = ask_snapshot(*daemon, std::nullopt);
  if (!first) return tl::unexpected(first.error());
  const double now = os::epoch_s();
  const char* ending = arguments.observations ? ".observations.jsonl" : ".trace.zst";
  const std::string file =
      arguments.file.empty() ? default_file(first->snapshot.host, now, ending) : arguments.file;
  const auto output = Output::open(file, "record");
  if (!output) return tl::unexpected(output.error());
  const model::TraceHeader header{BERTH_VERSION, first->snapshot.host, now, pace->history};
  std::unique_ptr<Destination> destination;
  if (arguments.observations) {
    destination = std::make_unique<ObservationLines>(*output, *pace);
  } else {
    destination = std::make_unique<Trace>(*output);
  }
  return record_into(session, *daemon, file, *destination, *pace, header, most_s);
}

std::string check_duration(const std::string& text) {
  const auto seconds = config::parse_duration_s(text);
  if (!seconds) return seconds.error().message();
  return *seconds > 0 ? "" : "a recording takes some time";
}

}  // namespace

Action declare_record(const Options& options) {
  const auto arguments = std::make_shared<RecordArguments>();
  options.option("-o", arguments->file, "Write this file, - for standard output")
      .type_name("FILE")
      .show_default("berth-HOST-TIME.trace.zst");
  options.option("--for", arguments->duration, "Time for which it records")
      .type_name("DURATION")
      .check(check_duration)
      .show_default("until Ctrl-C");
  options.flag("--observations", arguments->observations,
               "Write observations for profile fit, a JSON line each, in place of a trace");
  return [arguments](Session& session) { return record(session, *arguments); };
}

}  // namespace berth::cli
