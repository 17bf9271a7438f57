// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/input.h"
#include "cli/render.h"
#include "model/count_text.h"
#include "model/json_text.h"
#include "model/learning.h"
#include "model/text.h"
#include "policies/interference/learning/learn.h"
#include "policies/interference/learning/sums.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

constexpr std::size_t kMostObservations = 10'000'000;
// Lines with a fault that are named; the rest is counted.
constexpr std::size_t kMostFaults = 20;
// A call of the bus takes 128 KiB. A profile with both kinds of rows takes 2 KiB at most, without its name.
constexpr std::size_t kProfilesInCall = 30;

struct ProfileArguments {
  std::string action;
  std::vector<std::string> names;
  std::optional<std::string> file;
  PolicyArguments policies;
  bool sums = false;
};

Outcome<policies::LearningSettings> learning_settings(std::ostream& err, const ProfileArguments& arguments) {
  const auto settings = policy_settings(err, arguments.policies);
  if (!settings) return tl::unexpected(settings.error());
  return policies::learning_settings(settings->interference);
}

Outcome<model::Profiles> read_profiles(const std::string& file) {
  const auto text = read_input(file);
  if (!text) return tl::unexpected(text.error());
  auto profiles = model::parse_profiles(*text);
  if (!profiles) return problem(profiles.error().context(input_name(file)));
  return std::move(*profiles);
}

// A berth.models/1 document: of the file where one is given, else of the daemon.
Outcome<std::string> models_text(std::ostream& err, const ProfileArguments& arguments) {
  if (arguments.file) {
    const auto settings = learning_settings(err, arguments);
    if (!settings) return tl::unexpected(settings.error());
    const auto profiles = read_profiles(*arguments.file);
    if (!profiles) return tl::unexpected(profiles.error());
    return model::to_json(policies::judge_all(*profiles, {}, *settings));
  }
  return ask_daemon(&DaemonClient::models);
}

// Reads observations, a line each. Lines with a fault are named on `err`, and left out.
class Observations {
 public:
  Observations(std::ostream& err, std::string name) : err_(err), name_(std::move(name)) {}

  Outcome<std::vector<model::Observation>> read(std::string_view text) {
    std::vector<model::Observation> seen;
    std::size_t line = 0;
    while (!text.empty()) {
      take(model::take_line(text), ++line, seen);
      if (seen.size() > kMostObservations)
        return problem(Exit::wrong_use,
                       fmt::format("{}: more than {} observations", name_, kMostObservations));
    }
    if (faults_ > kMostFaults) warn(err_, {fmt::format("and {} more lines", faults_ - kMostFaults)});
    return seen;
  }

 private:
  void take(std::string_view line, std::size_t number, std::vector<model::Observation>& seen) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    auto observation = model::parse_observation(line);
    if (observation) {
      seen.push_back(std::move(*observation));
    } else if (++faults_ <= kMostFaults) {
      warn(err_, {fmt::format("{}, line {}, set aside: {}", name_, number, observation.error().message())});
    }
  }

  std::ostream& err_;
  std::string name_;
  std::size_t faults_ = 0;
};

Outcome<void> fit(Session& session, const ProfileArguments& arguments) {
  const auto settings = learning_settings(session.err, arguments);
  if (!settings) return tl::unexpected(settings.error());
  const std::string& file = arguments.names[0];
  const auto text = read_input(file);
  if (!text) return tl::unexpected(text.error());
  auto seen = Observations(session.err, input_name(file)).read(*text);
  if (!seen) return tl::unexpected(seen.error());
  if (seen->empty()) return problem(Exit::wrong_use, input_name(file) + ": it holds no observation");
  const auto learned = policies::learn_all(std::move(*seen), *settings);
  warn(session.err, learned.messages);
  if (arguments.sums) {
    session.out << model::to_json(learned.profiles, "") << "\n";
    return {};
  }
  const auto models = policies::judge_all(learned.profiles, {}, *settings);
  if (session.json) {
    for (const model::LearnedModel& model : models) session.out << model::to_json(model) << "\n";
    return {};
  }
  return show_document(session, model::to_json(models), "models", render_models);
}

Outcome<void> list(Session& session, const ProfileArguments& arguments) {
  return show_document(session, models_text(session.err, arguments), "list of models", render_models);
}

Outcome<void> show(Session& session, const ProfileArguments& arguments) {
  auto models = parse_document(models_text(session.err, arguments), "list of models");
  if (!models) return tl::unexpected(models.error());
  const std::string& service = arguments.names[0];
  Document of_service = Document::array();
  for (const Document& model : list_of(*models, "models")) {
    if (text_of(model, "service") == service) of_service.push_back(model);
  }
  if (of_service.empty())
    return problem(Exit::failed, fmt::format("nothing is learned of a service \"{}\"", service));
  (*models)["models"] = std::move(of_service);
  if (session.json) {
    session.out << model::json_text(*models) << "\n";
  } else {
    (void)render_service_models(session.out, *models, service, session.style);
  }
  return {};
}

Outcome<void> export_profiles(Session& session, const ProfileArguments& arguments) {
  if (arguments.file) {
    const auto profiles = read_profiles(*arguments.file);
    if (!profiles) return tl::unexpected(profiles.error());
    session.out << model::to_json(*profiles, "") << "\n";
    return {};
  }
  const auto text = ask_daemon(&DaemonClient::profiles);
  if (!text) return tl::unexpected(text.error());
  session.out << *text << "\n";
  return {};
}

// The first profiles of many, which are taken out.
model::Profiles take_some(model::Profiles& from) {
  model::Profiles some;
  while (!from.empty() && some.size() < kProfilesInCall) some.insert(from.extract(from.begin()));
  return some;
}

Outcome<void> import_profiles(Session& session, const ProfileArguments& arguments) {
  if (std::count(arguments.names.begin(), arguments.names.end(), "-") > 1)
    return problem(Exit::wrong_use, "standard input can be read for one thing only");
  model::Profiles all;
  for (const std::string& file : arguments.names) {
    const auto profiles = read_profiles(file);
    if (!profiles) return tl::unexpected(profiles.error());
    policies::merge(all, *profiles);
  }
  const std::size_t count = all.size();
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  std::size_t done = 0;
  while (!all.empty()) {
    const auto some = take_some(all);
    if (const auto taken = daemon->import_profiles(model::to_json(some, "")); !taken) {
      return problem(taken.error().exit, fmt::format("{} of {} profiles were added, then: {}", done, count,
                                                     taken.error().message));
    }
    done += some.size();
  }
  return tell(session, {{"schema", "berth.profile-import/1"}, {"profiles", count}},
              "added " + model::count_text(count, "profile"));
}

Outcome<void> forget(Session& session, const ProfileArguments& arguments) {
  const std::string& service = arguments.names[0];
  if (const auto done = ask_daemon(&DaemonClient::forget_profile, service); !done)
    return tl::unexpected(done.error());
  return tell(session, {{"schema", "berth.profile-forget/1"}, {"service", service}},
              printable(service) + ": forgotten");
}

struct Subcommand {
  std::string_view name;
  const char* names;  // in words
  std::size_t least;
  std::size_t most;
  Outcome<void> (*run)(Session&, const ProfileArguments&);
};
constexpr std::size_t kMany = 1000;
constexpr std::array<Subcommand, 6> kSubcommands{{
    {"list", "no argument", 0, 0, list},
    {"show", "one SERVICE", 1, 1, show},
    {"export", "no argument", 0, 0, export_profiles},
    {"import", "one FILE or more", 1, kMany, import_profiles},
    {"forget", "one SERVICE", 1, 1, forget},
    {"fit", "one FILE", 1, 1, fit},
}};

Outcome<void> profile(Session& session, const ProfileArguments& arguments) {
  const auto* command =
      std::find_if(kSubcommands.begin(), kSubcommands.end(),
                   [&](const Subcommand& candidate) { return candidate.name == arguments.action; });
  if (command == kSubcommands.end()) {
    return problem(
        Exit::wrong_use,
        fmt::format("\"{}\": there are list, show, export, import, forget and fit", arguments.action));
  }
  if (arguments.names.size() < command->least || arguments.names.size() > command->most)
    return problem(Exit::wrong_use, fmt::format("{} takes {}", command->name, command->names));
  const bool reads_file = command->name == "list" || command->name == "show" || command->name == "export";
  if (arguments.file && !reads_file)
    return problem(Exit::wrong_use, fmt::format("{} takes no --file", command->name));
  const bool judges = command->name == "fit" || (arguments.file && command->name != "export");
  if ((arguments.policies.config || !arguments.policies.overrides.empty()) && !judges)
    return problem(Exit::wrong_use,
                   "--config and -o need fit, or list or show with --file: the daemon has its own settings");
  const bool reads_input = arguments.file == "-" || (command->name == "fit" && arguments.names[0] == "-");
  if (arguments.policies.config == "-" && reads_input)
    return problem(Exit::wrong_use, "standard input can be read for one thing only");
  if (arguments.sums && command->name != "fit") return problem(Exit::wrong_use, "--sums needs fit");
  return command->run(session, arguments);
}

}  // namespace

Action declare_profile(const Options& options) {
  const auto arguments = std::make_shared<ProfileArguments>();
  options.option("action", arguments->action, "list, show, export, import, forget or fit")
      .required()
      .type_name("");
  options
      .option("names", arguments->names, "show, forget: a service; import, fit: files, - for standard input")
      .type_name("");
  options.option("--file", arguments->file, "Read the profiles of this file instead of the daemon's")
      .type_name("FILE");
  options.flag("--sums", arguments->sums, "fit: print the profiles, for import or /etc/berth/profiles.d");
  declare_policy_options(options, arguments->policies);
  return [arguments](Session& session) { return profile(session, *arguments); };
}

}  // namespace berth::cli
