// SPDX-License-Identifier: Apache-2.0
#include "cli/workload_name.h"

#include "cli/document.h"
#include "cli/text.h"
#include "model/name.h"
#include "model/path.h"

#include <fmt/core.h>

namespace berth::cli {

Outcome<std::string> meant_by(const std::string& given, const std::vector<std::string>& ids) {
  std::vector<std::string> meant;
  for (const std::string& id : ids) {
    if (id == given) return given;
    const std::string last(model::last_component(id));
    if (last == given || last == given + ".service" || last == given + ".scope") meant.push_back(id);
  }
  if (meant.size() > 1) {
    return problem(Exit::wrong_use, fmt::format("\"{}\" matches several workloads: {}", printable(given),
                                                printable(model::joined(meant, ", "))));
  }
  return meant.empty() ? given : meant.front();
}

Outcome<Addressed> address(const std::string& given) {
  // The bus would refuse it without naming the fault.
  if (!model::is_name(given)) {
    return problem(Exit::wrong_use,
                   fmt::format("\"{}\" is not a workload's id; `berthctl list` shows all", printable(given)));
  }
  auto daemon = DaemonClient::connect();
  if (!daemon) return tl::unexpected(daemon.error());
  const auto text = daemon->workloads();
  if (!text) return tl::unexpected(text.error());
  const auto workloads = parse_document(*text, "list of workloads");
  if (!workloads) return tl::unexpected(workloads.error());
  std::vector<std::string> ids;
  for (const Document& workload : list_of(*workloads, "workloads")) ids.push_back(text_of(workload, "id"));
  auto meant = meant_by(given, ids);
  if (!meant) return tl::unexpected(meant.error());
  return Addressed{std::move(*daemon), std::move(*meant)};
}

}  // namespace berth::cli
