// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/rank.h"

#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/input.h"
#include "cli/render_plan.h"
#include "model/count_text.h"
#include "model/json.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

struct RankArguments {
  std::string request;
  std::vector<std::string> snapshots;
  PolicyArguments policies;
};

Outcome<void> check_standard_input(const RankArguments& arguments) {
  auto readers = std::count(arguments.snapshots.begin(), arguments.snapshots.end(), "-");
  readers += arguments.request == "-" ? 1 : 0;
  readers += arguments.policies.config == "-" ? 1 : 0;
  if (readers > 1) return problem(Exit::wrong_use, "standard input can be read for one thing only");
  return {};
}

Outcome<model::PendingWorkload> read_request(Session& session, const std::string& file) {
  const auto text = read_input(file);
  if (!text) return tl::unexpected(text.error());
  auto parsed = model::parse_request(*text);
  if (!parsed) return problem(parsed.error().context(input_name(file)));
  warn(session.err, parsed->warnings, input_name(file));
  return std::move(parsed->request);
}

// The hosts of all snapshots, one after the other: keeps of each only the data for ranking.
class Hosts {
 public:
  Hosts(Session& session, const policies::PolicySettings& settings)
      : session_(session), settings_(settings) {}

  // All of its hosts, or none.
  Outcome<void> add_file(const std::string& file) {
    const std::size_t before = hosts_.size();
    auto added = add_documents(file);
    if (added) return added;
    hosts_.erase(hosts_.begin() + static_cast<std::ptrdiff_t>(before), hosts_.end());
    std::erase_if(names_, [&](const auto& named) { return named.second.place >= before; });
    return added;
  }
  Outcome<void> add(const std::string& text, const std::string& name) {
    const auto snapshot = parse_snapshot(session_.err, text, name);
    if (!snapshot) return tl::unexpected(snapshot.error());
    if (const auto [first, fresh] = names_.emplace(snapshot->host, Input{name, hosts_.size()}); !fresh) {
      return problem(Exit::wrong_use, fmt::format("{}: $.host: {} has the host \"{}\" already", name,
                                                  first->second.name, snapshot->host));
    }
    policies::Host host(*snapshot, settings_);
    policies::take_promised(host, snapshot->pending);
    hosts_.push_back(std::move(host));
    return {};
  }

  const std::vector<policies::Host>& all() const { return hosts_; }

 private:
  struct Input {
    std::string name;
    std::size_t place = 0;  // in hosts_
  };

  Outcome<void> add_documents(const std::string& file) {
    const auto text = read_input(file);
    if (!text) return tl::unexpected(text.error());
    const auto documents = split_documents(*text);
    if (documents.empty()) return problem(Exit::wrong_use, input_name(file) + ": it holds no snapshot");
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const std::string name =
          documents.size() == 1 ? input_name(file) : fmt::format("{}, document {}", input_name(file), i + 1);
      if (auto added = add(std::string(documents[i]), name); !added) return added;
    }
    return {};
  }

  Session& session_;
  const policies::PolicySettings& settings_;
  std::vector<policies::Host> hosts_;
  std::map<std::string, Input> names_;  // by host
};

Outcome<void> add_own_host(Hosts& hosts) {
  auto daemon = DaemonClient::connect();
  if (!daemon) {
    return problem(daemon.error().exit,
                   daemon.error().message + "; or give files: berthctl rank --snapshot FILE...");
  }
  const auto text = daemon->snapshot();
  if (!text) return tl::unexpected(text.error());
  return hosts.add(*text, "the daemon's snapshot");
}

Outcome<void> rank(Session& session, const RankArguments& arguments) {
  if (auto checked = check_standard_input(arguments); !checked) return checked;
  const auto settings = policy_settings(session.err, arguments.policies);
  if (!settings) return tl::unexpected(settings.error());
  auto request = read_request(session, arguments.request);
  if (!request) return tl::unexpected(request.error());

  Hosts hosts(session, *settings);
  if (arguments.snapshots.empty()) {
    if (auto added = add_own_host(hosts); !added) return added;
  }
  // One bad file of many would otherwise keep work from all hosts.
  std::vector<Outcome<void>> bad;
  for (const std::string& file : arguments.snapshots) {
    if (auto added = hosts.add_file(file); !added) bad.push_back(std::move(added));
  }
  if (!bad.empty() && hosts.all().empty()) return bad.front();
  for (const auto& added : bad) warn(session.err, {"left out: " + added.error().message});

  const model::Ranking ranking{.request = *request, .bins = policies::rank_bins(*request, hosts.all())};
  if (session.json) {
    session.out << model::to_json(ranking) << "\n";
  } else {
    render_ranking(session.out, ranking, session.style);
  }
  if (!ranking.bins.fitting.empty()) return {};
  const auto bins = std::count_if(
      ranking.bins.rejected.begin(), ranking.bins.rejected.end(),
      [](const model::RejectedBin& bin) { return bin.numa_nodes.empty(); });  // no sets of nodes
  return problem(Exit::refused, fmt::format("\"{}\" fits nowhere: {} on {} rejected", request->id,
                                            model::count_text(bins, "NUMA node"),
                                            model::count_text(hosts.all().size(), "host")));
}

}  // namespace

Action declare_rank(const Options& options) {
  const auto arguments = std::make_shared<RankArguments>();
  options.option("--request", arguments->request, "The request to place, - for standard input")
      .required()
      .type_name("FILE");
  options
      .option("--snapshot", arguments->snapshots,
              "Hosts to choose from, one or more snapshots a file, - for standard input")
      .type_name("FILE ...");
  declare_policy_options(options, arguments->policies);
  return [arguments](Session& session) { return rank(session, *arguments); };
}

}  // namespace berth::cli
