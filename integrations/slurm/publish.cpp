// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/publish.h"

#include "integrations/slurm/command.h"
#include "integrations/slurm/gres.h"
#include "integrations/slurm/node.h"
#include "model/plain_text.h"

#include <chrono>
#include <utility>

#include <fmt/core.h>

namespace berth::slurm {

namespace {

using model::ErrorKind;

// Two calls and a check fit into the minute that slurmd gives the program.
constexpr std::chrono::seconds kCallLimit{25};
constexpr std::chrono::seconds kCheckLimit{8};

// The first line of what the program said.
std::string first_line(const std::string& text) {
  return model::plain_text(text.substr(0, text.find('\n')), model::kMostLineBytes);
}

model::Result<std::string> call(const std::vector<std::string>& words,
                                const std::vector<std::string>& environment,
                                std::chrono::seconds limit = kCallLimit) {
  auto finished = run_program(words, environment, limit);
  if (!finished) return model::fail(finished.error());
  if (finished->status == 0) return std::move(finished->output);
  // scontrol prints some of its errors on standard output.
  const std::string said = first_line(finished->errors.empty() ? finished->output : finished->errors);
  return model::fail(ErrorKind::refused, fmt::format("{} {}: {} (exit status {})", words[0], words[1],
                                                     said.empty() ? "no message" : said, finished->status));
}

model::Result<Node> shown_node(const std::string& node, const Options& options,
                               const std::vector<std::string>& environment, std::chrono::seconds limit) {
  const auto shown = call({options.scontrol, "show", "node", node}, environment, limit);
  if (!shown) return model::fail(shown.error());
  auto record = parse_node(*shown, node);
  if (!record) return model::fail(record.error().context("the answer of scontrol show node"));
  return record;
}

// The record has none of the resource yet, and gets some.
bool is_first_amount(const Node& before, const Update& update, const Settings& settings) {
  return update.gres && count_of(before.gres, settings.gres_name) == 0 &&
         *update.gres != with_count(before.gres, settings.gres_name, 0);
}

// scontrol reports no error where Slurm ignores the amount, because it does not know the resource.
model::Result<void> check_that_it_is_there(const Options& options, const std::string& node,
                                           const std::vector<std::string>& environment) {
  const std::string& gres = options.settings.gres_name;
  const auto record = shown_node(node, options, environment, kCheckLimit);
  if (!record || count_of(record->gres, gres) != 0) return {};
  return model::fail(ErrorKind::refused,
                     fmt::format("Slurm ignored the amount of {0}: add {0} to GresTypes of slurm.conf, then "
                                 "restart slurmctld and each slurmd",
                                 gres));
}

}  // namespace

model::Result<Published> publish(const std::string& node, const Berth& berth, const Options& options,
                                 const std::vector<std::string>& environment) {
  const auto record = shown_node(node, options, environment, kCallLimit);
  if (!record) return model::fail(record.error());

  Published published;
  if (const auto most = configured_too_low(*record, options.settings.gres_name)) {
    published.warning = fmt::format(
        "slurm.conf has {0}:{1} for this node, and berth published more: raise it (berth-slurm(8)), "
        "then resume the node",
        options.settings.gres_name, *most);
  }
  const Update update = decide(*record, berth, options.settings);
  if (update.empty()) return published;
  published.text = describe(*record, update);
  published.words = arguments_of(node, update);
  published.words.insert(published.words.begin(), options.scontrol);
  if (options.dry_run) return published;
  const auto updated = call(published.words, environment);
  if (!updated) return model::fail(updated.error().context(published.text));
  if (is_first_amount(*record, update, options.settings)) {
    if (const auto there = check_that_it_is_there(options, node, environment); !there)
      return model::fail(there.error().context(published.text));
  }
  return published;
}

}  // namespace berth::slurm
