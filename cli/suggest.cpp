// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/document.h"
#include "cli/host_scan.h"
#include "cli/suggestion.h"
#include "cli/wall_clock.h"
#include "config/config.h"
#include "config/units.h"
#include "model/json_text.h"

#include <array>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this host";
}

Outcome<void> suggest(Session& session, double look_s) {
  if (isatty(STDERR_FILENO) != 0 && !session.json)
    session.err << fmt::format("berthctl: looking at the services of this host for {:g} s\n", look_s);
  const auto host = scan_host("/proc", cgroup_root_of("/proc"), [look_s] {
    std::this_thread::sleep_for(std::chrono::duration<double>(look_s));
  });
  if (!host) return tl::unexpected(host.error());
  const std::string text =
      suggestion(*host, fmt::format("A first configuration for {}, written by `berthctl suggest` on {}.",
                                    host_name(), format_time(wall_s())));
  // A name that the scan did not foresee must not become a file that berthd refuses.
  if (const auto settings = config::parse(text, "the suggestion"); !settings)
    return problem(settings.error());
  if (session.json) {
    session.out << model::json_text({{"schema", "berth.suggest/1"}, {"toml", text}}) << "\n";
  } else {
    session.out << text;
  }
  return {};
}

std::string check_look(const std::string& text) {
  const auto seconds = config::parse_duration_s(text);
  if (!seconds) return seconds.error().message();
  return *seconds >= 0.1 && *seconds <= 3600 ? "" : "a look takes from 100ms to 1h";
}

}  // namespace

Action declare_suggest(const Options& options) {
  const auto look = std::make_shared<std::string>("5s");
  options.option("--for", *look, "Time for which the use of CPU is measured")
      .type_name("DURATION")
      .check(check_look)
      .show_default();
  return [look](Session& session) { return suggest(session, *config::parse_duration_s(*look)); };
}

}  // namespace berth::cli
