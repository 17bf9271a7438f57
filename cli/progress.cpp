// SPDX-License-Identifier: Apache-2.0
#include "model/progress.h"

#include "cli/command.h"
#include "cli/document.h"
#include "cli/workload_name.h"
#include "model/json_text.h"

#include <memory>
#include <ostream>
#include <string>

#include <fmt/core.h>

namespace berth::cli {

namespace {

struct ProgressArguments {
  std::string workload;
  std::string fraction;
};

Outcome<void> report(Session& session, const ProgressArguments& arguments) {
  const auto fraction = model::parse_progress(arguments.fraction);
  if (!fraction) {
    return problem(Exit::wrong_use,
                   fmt::format("\"{}\" is {}", arguments.fraction, fraction.error().message()));
  }
  // On the bus the caller's own workload has no name.
  const bool own = arguments.workload == "self";
  const auto as_own = [](DaemonClient daemon) { return Addressed{std::move(daemon), "", ""}; };
  auto addressed = own ? DaemonClient::connect().map(as_own) : address(arguments.workload);
  if (!addressed) return tl::unexpected(addressed.error());
  const auto done = addressed->daemon.report_progress(addressed->id, *fraction);
  if (!done) return tl::unexpected(addressed->hinted(done.error()));
  const std::string& workload = own ? arguments.workload : addressed->id;
  return tell(session, {{"schema", "berth.progress/1"}, {"workload", workload}, {"progress", *fraction}},
              printable(workload) + ": " + format_share(*fraction));
}

}  // namespace

Action declare_progress(const Options& options) {
  const auto arguments = std::make_shared<ProgressArguments>();
  options
      .option(
          "workload", arguments->workload,
          "Its id, as `berthctl list` has it, its last component, or self: the one that this command runs in")
      .required()
      .type_name("");
  options.option("fraction", arguments->fraction, "0.42, or DONE/TOTAL such as 42/100")
      .required()
      .type_name("");
  return [arguments](Session& session) { return report(session, *arguments); };
}

}  // namespace berth::cli
