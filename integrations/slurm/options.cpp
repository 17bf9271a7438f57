// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/options.h"

#include "model/number.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/core.h>

namespace berth::slurm {

namespace {

constexpr std::size_t kMaxPathBytes = 4095;
constexpr std::size_t kMaxGresNameBytes = 63;
constexpr double kLeastAge_s = 5;
constexpr double kMostAge_s = 86400;
constexpr std::uint32_t kMaxBaseWeight = 4'000'000'000;

constexpr const char* kHelp = R"(Usage: berth-slurm [OPTION...]

Publishes the state of this host's berthd in Slurm: the node's weight, its best-effort CPUs as a generic
resource, its extra text, and a drain while the host takes no work. slurmd runs it as HealthCheckProgram.

  --node NAME           The node; $SLURMD_NODENAME if not given
  --state FILE          The state of berthd [/run/berth/state.json]
  --scontrol PATH       Slurm's scontrol [/usr/bin/scontrol]
  --max-age SECONDS     An older state is not believed, 5 to 86400 [120]
  --base-weight NUMBER  The weight of an empty host; a full one has 100 more [1]
  --gres NAME           The generic resource [becpu]
  --no-weight           Leave the weight alone
  --no-gres             Leave the generic resources alone
  --no-drain            Never drain or resume the node
  --no-extra            Leave the extra text alone
  --dry-run             Print the call of scontrol that would change the node, and change nothing
  --help                Print this text and exit
  --version             Print the version and exit
)";

enum Flag : int {
  kNode = 1,
  kState,
  kScontrol,
  kMaxAge,
  kBaseWeight,
  kGres,
  kNoWeight,
  kNoGres,
  kNoDrain,
  kNoExtra,
  kDryRun,
  kHelpFlag,
  kVersionFlag
};

constexpr std::array kLongOptions{
    option{"node", required_argument, nullptr, kNode},
    option{"state", required_argument, nullptr, kState},
    option{"scontrol", required_argument, nullptr, kScontrol},
    option{"max-age", required_argument, nullptr, kMaxAge},
    option{"base-weight", required_argument, nullptr, kBaseWeight},
    option{"gres", required_argument, nullptr, kGres},
    option{"no-weight", no_argument, nullptr, kNoWeight},
    option{"no-gres", no_argument, nullptr, kNoGres},
    option{"no-drain", no_argument, nullptr, kNoDrain},
    option{"no-extra", no_argument, nullptr, kNoExtra},
    option{"dry-run", no_argument, nullptr, kDryRun},
    option{"help", no_argument, nullptr, kHelpFlag},
    option{"version", no_argument, nullptr, kVersionFlag},
};

bool is_path(std::string_view text) {
  return text.size() > 1 && text.size() <= kMaxPathBytes && text.front() == '/';
}

// Slurm's names of resources.
bool is_gres_name(std::string_view text) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto allowed = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && text.size() <= kMaxGresNameBytes && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), allowed);
}

// Takes one option. Returns the reason for refusing its value.
std::optional<std::string> take(int flag, std::string_view value, Options& options) {
  const auto path = [&](std::string& target) -> std::optional<std::string> {
    if (!is_path(value)) return "it is no absolute path";
    target = value;
    return std::nullopt;
  };
  switch (flag) {
    case kNode:
      options.node = value;
      return why_no_node_name(value);
    case kState:
      return path(options.state_file);
    case kScontrol:
      return path(options.scontrol);
    case kMaxAge: {
      const auto seconds = model::to_number<double>(value);
      // Not a number is neither.
      if (!seconds || !(*seconds >= kLeastAge_s && *seconds <= kMostAge_s))
        return "it is no number from 5 to 86400";
      options.max_age_s = *seconds;
      return std::nullopt;
    }
    case kBaseWeight: {
      const auto weight = model::to_number<std::uint32_t>(value);
      if (!weight || *weight > kMaxBaseWeight)
        return fmt::format("it is no number from 0 to {}", kMaxBaseWeight);
      options.settings.base_weight = *weight;
      return std::nullopt;
    }
    case kGres:
      if (!is_gres_name(value)) return "it is no name of small letters, digits and underscores";
      options.settings.gres_name = value;
      return std::nullopt;
    case kNoWeight:
      options.settings.weight = false;
      return std::nullopt;
    case kNoGres:
      options.settings.gres = false;
      return std::nullopt;
    case kNoDrain:
      options.settings.drain = false;
      return std::nullopt;
    case kNoExtra:
      options.settings.extra = false;
      return std::nullopt;
    default:
      options.dry_run = true;
      return std::nullopt;
  }
}

}  // namespace

std::variant<Options, ExitStatus> parse_options(int argc, char* const* argv) {
  const integrations::CommandLine line("berth-slurm", argc, argv, {kLongOptions.begin(), kLongOptions.end()});
  Options options;
  const auto status =
      line.each([&](int flag, const char* name, std::string_view value) -> std::optional<ExitStatus> {
        if (flag == kHelpFlag) fmt::print("{}", kHelp);
        if (flag == kVersionFlag) fmt::print("berth-slurm {}\n", BERTH_VERSION);
        if (flag == kHelpFlag || flag == kVersionFlag) return ExitStatus::done;
        const auto problem = take(flag, value, options);
        return problem ? std::optional(line.wrong_value(name, value, *problem)) : std::nullopt;
      });
  if (status) return *status;
  return options;
}

}  // namespace berth::slurm
