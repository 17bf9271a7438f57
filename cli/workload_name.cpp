// SPDX-License-Identifier: Apache-2.0
#include "cli/workload_name.h"

#include "cli/document.h"
#include "cli/similar.h"
#include "cli/text.h"
#include "model/ground.h"
#include "model/name.h"
#include "model/path.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

namespace {

constexpr std::size_t kMostMeant = 3;

// "nginx" of "nginx.service"; another name as it is.
std::string_view without_suffix(std::string_view name) {
  for (const std::string_view suffix : {".service", ".scope"}) {
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

}  // namespace

Outcome<std::string> meant_by(const std::string& given, const std::vector<std::string>& ids,
                              const std::vector<std::string>& users) {
  std::vector<std::string> meant;
  std::vector<std::string> of_users;
  for (const std::string& id : ids) {
    if (id == given) return given;
    const std::string last(model::last_component(id));
    if (last == given || last == given + ".service" || last == given + ".scope") {
      const bool of_a_user = std::binary_search(users.begin(), users.end(), id);
      (of_a_user ? of_users : meant).push_back(id);
    }
  }
  if (meant.empty() && !of_users.empty()) {
    return problem(
        Exit::wrong_use,
        fmt::format("\"{}\" names only work that a user named itself: {}; give the whole id if you "
                    "mean that",
                    printable(given), printable(model::joined(of_users, ", "))));
  }
  if (meant.size() > 1) {
    return problem(Exit::wrong_use, fmt::format("\"{}\" matches several workloads: {}", printable(given),
                                                printable(model::joined(meant, ", "))));
  }
  return meant.empty() ? given : meant.front();
}

std::string meant_perhaps(const std::string& given, const std::vector<std::string>& ids) {
  const std::array<std::string_view (*)(std::string_view), 3> names_of{
      [](std::string_view id) { return id; }, [](std::string_view id) { return model::last_component(id); },
      [](std::string_view id) { return without_suffix(model::last_component(id)); }};
  for (const auto& name_of : names_of) {
    std::vector<std::string> names;
    names.reserve(ids.size());
    for (const std::string& id : ids) names.emplace_back(name_of(id));
    std::vector<std::string> meant;
    for (const std::string& name : similar_to(given, names)) {
      for (const std::string& id : ids) {
        if (meant.size() == kMostMeant) break;
        if (name_of(id) == name && std::find(meant.begin(), meant.end(), id) == meant.end())
          meant.push_back(id);
      }
    }
    if (!meant.empty()) return did_you_mean(meant);
  }
  return "";
}

Problem Addressed::hinted(Problem problem) const {
  if (problem.exit == Exit::failed) problem.message += hint;
  return problem;
}

Outcome<Addressed> address(const std::string& given) {
  // The bus would refuse it without naming the fault.
  if (!model::is_name(given)) {
    return problem(Exit::wrong_use,
                   fmt::format("\"{}\" is not a workload's id; `berthctl list` shows all", printable(given)));
  }
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto workloads = parse_document(daemon->workloads(), "list of workloads");
  if (!workloads) return tl::unexpected(workloads.error());
  std::vector<std::string> ids;
  std::vector<std::string> users;
  for (const Document& workload : list_of(*workloads, "workloads")) {
    ids.push_back(text_of(workload, "id"));
    const auto user = number_of(workload, "user");
    const model::Ground ground{.user =
                                   user ? std::optional(static_cast<std::uint32_t>(*user)) : std::nullopt};
    if (!model::may_favour_itself(ground, model::Word::name)) users.push_back(ids.back());
  }
  std::sort(users.begin(), users.end());
  auto meant = meant_by(given, ids, users);
  if (!meant) return tl::unexpected(meant.error());
  const bool known = std::find(ids.begin(), ids.end(), *meant) != ids.end();
  return Addressed{std::move(*daemon), std::move(*meant), known ? "" : meant_perhaps(given, ids)};
}

}  // namespace berth::cli
