// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/input.h"
#include "cli/page_table.h"
#include "cli/progress_bar.h"
#include "cli/render_observed.h"
#include "cli/render_replay.h"
#include "model/json_text.h"
#include "os/read_file.h"
#include "replay/observed.h"
#include "replay/page.h"
#include "replay/side.h"
#include "trace/reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::cli {

namespace {

struct ReplayArguments {
  std::string file;
  PolicyArguments policies;
  std::optional<std::string> compare;
  std::optional<std::string> report;
  std::vector<std::string> measured;
  std::optional<std::string> observations;
  std::uint32_t most = 20;
};

model::Result<std::size_t> read_trace(int fd, char* buffer, std::size_t size) {
  const ssize_t count = os::read_retrying(fd, buffer, size);
  if (count < 0) return model::fail(model::Error::from_errno(errno, "cannot read the trace"));
  return static_cast<std::size_t>(count);
}

// 0 where it is no plain file.
std::uint64_t size_of(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// The name of the settings for people.
std::string settings_name(const PolicyArguments& arguments) {
  const auto& [file, overrides] = arguments;
  std::string name =
      file ? (*file == "-" ? "settings of standard input" : "settings of " + *file) : "the default settings";
  for (std::size_t i = 0; i < overrides.size(); ++i) name += (i == 0 ? " with " : ", ") + overrides[i];
  return name;
}

// The sides of a replay.
class Replay {
 public:
  Replay(std::vector<std::string> names, const std::vector<policies::PolicySettings>& settings,
         std::size_t most)
      : most_(most), differences_(most) {
    // The sides stay where they are: the result points to them.
    sides_.reserve(settings.size());
    for (std::size_t i = 0; i < settings.size(); ++i) {
      sides_.emplace_back(settings[i]);
      replayed_.sides.emplace_back().name = std::move(names[i]);
    }
  }

  void step(const model::Snapshot& snapshot) {
    if (replayed_.ticks++ == 0) replayed_.begun = snapshot.time;
    replayed_.ended = snapshot.time;
    std::vector<const std::vector<replay::Decision>*> decisions;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      decisions.push_back(&sides_[i].step(snapshot));
      ReplayedSide& side = replayed_.sides[i];
      for (const replay::Decision& decision : *decisions.back()) {
        if (!is_told(decision)) continue;
        ++side.decided;
        if (side.decisions.size() < most_) side.decisions.push_back(decision);
      }
    }
    if (sides_.size() > 1) differences_.add(*decisions[0], *decisions[1]);
  }

  // Call it after the last step.
  const Replayed& finish(const trace::Reader& reader) {
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      sides_[i].finish();
      replayed_.sides[i].side = &sides_[i];
    }
    replayed_.host = reader.header().host;
    replayed_.cut = reader.cut();
    if (sides_.size() > 1) replayed_.differences = &differences_;
    return replayed_;
  }

  replay::Page page(const model::Topology& topology) const {
    replay::Page page{.host = replayed_.host,
                      .begun = replayed_.begun,
                      .ended = replayed_.ended,
                      .ticks = replayed_.ticks,
                      .cut = replayed_.cut,
                      .topology = &topology,
                      .sides = {},
                      .differences = replayed_.differences,
                      .measured = {}};
    for (const ReplayedSide& side : replayed_.sides)
      page.sides.push_back({side.name, &side.side->figures(), &side.side->history()});
    return page;
  }

 private:
  std::size_t most_;
  std::vector<replay::Side> sides_;
  replay::Differences differences_;
  Replayed replayed_;
};

// Calls `step` with each tick as long as it returns true. The first one has been read where there are `any`.
// A bar shows the progress.
void each_tick(Session& session, int trace, trace::Reader& reader, bool any,
               const std::function<bool(const model::Snapshot&)>& step) {
  ProgressBar bar(session.err, STDERR_FILENO);
  const auto size = static_cast<double>(size_of(trace));
  for (bool more = any; more && step(reader.snapshot()); more = reader.next()) {
    if (!bar.is_due()) continue;
    const std::string text = fmt::format("{} ticks, {}", reader.ticks(), format_time(reader.snapshot().time));
    if (size > 0) {
      bar.show(static_cast<double>(reader.bytes_read()) / size, text);
    } else {
      bar.show(text);
    }
  }
}

// Writes the observations of the trace to `file`.
Outcome<void> observe(Session& session, int trace, trace::Reader& reader, bool any, const std::string& file,
                      model::DomainKind shared_domain) {
  const auto output = Output::open(file, "replay --observations");
  if (!output) return tl::unexpected(output.error());
  replay::Observed observed;
  model::Result<void> written;
  each_tick(session, trace, reader, any, [&](const model::Snapshot& snapshot) {
    written = output->write(observation_lines(observed.take(snapshot, shared_domain)));
    return written.has_value();
  });
  if (!written) return problem(written.error());
  tell_observed(session, observed, file, reader.cut());
  return {};
}

Outcome<void> replay_file(Session& session, const ReplayArguments& arguments) {
  const auto readers = std::count(arguments.measured.begin(), arguments.measured.end(), "-") +
                       (arguments.file == "-" ? 1 : 0) + (arguments.policies.config == "-" ? 1 : 0) +
                       (arguments.compare == "-" ? 1 : 0);
  if (readers > 1) return problem(Exit::wrong_use, "standard input can be read for one thing only");
  std::vector<std::string> names{settings_name(arguments.policies)};
  auto own = policy_settings(session.err, arguments.policies);
  if (!own) return tl::unexpected(own.error());
  std::vector<policies::PolicySettings> settings{std::move(*own)};
  if (arguments.compare) {
    auto other = policy_settings(session.err, {arguments.compare, {}});
    if (!other) return tl::unexpected(other.error());
    names.push_back(settings_name({arguments.compare, {}}));
    settings.push_back(std::move(*other));
  }

  std::vector<replay::PageTable> measured;
  for (const std::string& file : arguments.measured) {
    auto table = read_page_table(file);
    if (!table) return tl::unexpected(table.error());
    measured.push_back(std::move(*table));
  }
  const auto input = open_input(arguments.file);
  if (!input) return tl::unexpected(input.error());
  const int trace = input->get();
  auto reader = trace::Reader::open(
      [trace](char* buffer, std::size_t size) { return read_trace(trace, buffer, size); });
  if (!reader) return problem(reader.error().context(input_name(arguments.file)));
  const bool any = reader->next();
  if (!any && reader->cut())
    return problem(Exit::wrong_use, input_name(arguments.file) + ": " + *reader->cut());
  if (arguments.observations) {
    return observe(session, trace, *reader, any, *arguments.observations,
                   settings.front().interference.shared_domain);
  }

  // Now and not at the end: a file that cannot be made costs no replay.
  std::optional<Output> report;
  if (arguments.report) {
    if (*arguments.report == "-") return problem(Exit::wrong_use, "--report: a page needs a file of its own");
    auto opened = Output::open(*arguments.report, "berthctl replay --report");
    if (!opened) return tl::unexpected(opened.error());
    report.emplace(std::move(*opened));
  }

  Replay run(std::move(names), settings, arguments.most);
  each_tick(session, trace, *reader, any, [&run](const model::Snapshot& snapshot) {
    run.step(snapshot);
    return true;
  });
  const Replayed& replayed = run.finish(*reader);
  if (report) {
    replay::Page page = run.page(reader->snapshot().topology);
    page.measured = std::move(measured);
    const auto written = report->write(replay::page_html(page));
    if (!written) return problem(written.error());
  }
  if (session.json) {
    session.out << model::json_text(replay_document(replayed)) << "\n";
  } else {
    render_replay(session.out, replayed, session.style);
    if (arguments.report) session.out << fmt::format("The report is in {}.\n", printable(*arguments.report));
  }
  return {};
}

}  // namespace

Action declare_replay(const Options& options) {
  const auto arguments = std::make_shared<ReplayArguments>();
  options.option("trace", arguments->file, "A file of berthctl record, - for standard input")
      .required()
      .type_name("FILE");
  declare_policy_options(options, arguments->policies);
  const auto compare =
      options.option("--compare", arguments->compare, "Compare with the settings of this file")
          .type_name("FILE");
  const auto report =
      options.option("--report", arguments->report, "Write a page with plots, HTML that needs no network")
          .type_name("FILE");
  const auto measured =
      options.option("--measured", arguments->measured, "Put this output of trial or blame --json in it")
          .type_name("FILE")
          .one_value()
          .needs(report);
  const auto most = options.option("-n", arguments->most, "Show so many decisions, the first ones")
                        .type_name("NUMBER")
                        .from_to(1, 1'000'000)
                        .show_default();
  options
      .option("--observations", arguments->observations, "Write observations for profile fit, - for stdout")
      .type_name("FILE")
      .excludes(compare)
      .excludes(report)
      .excludes(measured)
      .excludes(most);
  return [arguments](Session& session) { return replay_file(session, *arguments); };
}

}  // namespace berth::cli
