// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/options.h"

#include "model/dns_name.h"
#include "model/plain_text.h"
#include "model/text.h"
#include "os/read_file.h"
#include "os/safe_path.h"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace berth::kubernetes {

namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{64} << 10;

constexpr const char* kHelp = R"(Usage: berth-kube [OPTION...]

Publishes the state of this host's berthd in Kubernetes: the node's best-effort CPU and memory as extended
resources, a taint while the host takes no work, and Events on pods that berthd ends. systemd runs it beside
berthd.

  --config FILE         Settings; a file has --max-age as max_age [/etc/berth/kube.toml, if it is there]
  --node NAME           The node [the host's name in small letters]
  --server URL          The API server, https://HOST:PORT; http:// for a loopback address alone
  --ca FILE             The certificate authority of the cluster
  --token FILE          A bearer token; read again for each request
  --certificate FILE    A client certificate, and with it
  --key FILE            its key; both are read again for each connection
  --domain NAME         The domain of the resources and the taint [berth.org]
  --state FILE          The state of berthd [/run/berth/state.json]
  --max-age SECONDS     An older state is not believed, 5 to 86400 [120]
  --interval SECONDS    Publish this often without a change, 5 to 3600 [60]
  --min-change SHARE    A smaller change of an amount waits for the interval, 0 to 1 [0.01]
  --end WORD            A pod that berth ends gets an Event (report), or is evicted too (evict) [evict]
  --relocate WORD       A pod that should run elsewhere gets an Event (report), or is evicted too (evict) [report]
  --relocate-after SECONDS
                        Evict once that has held for so long, and one pod in that time, 0 to 3600 [60]
  --no-events           Make no Events on pods
  --no-taint            Leave taints alone; a host that takes no work then has nothing for best-effort work
  --once                Publish once and exit
  --withdraw            Remove all that berth-kube has published, and exit; with --once, try only once and not
                        for 25 seconds
  --dry-run             Print the request that would be made, and exit
  --help                Print this text and exit
  --version             Print the version and exit
)";

// Values of getopt_long for options that are no settings; settings have their number in the table.
enum Flag : int { kConfig = 1000, kNoTaint, kNoEvents, kOnce, kWithdraw, kDryRun, kHelpFlag, kVersionFlag };

std::vector<option> long_options() {
  std::vector<option> all;
  int number = 1;
  for (const Setting& setting : known_settings())
    all.push_back({setting.name, required_argument, nullptr, number++});
  all.push_back({"config", required_argument, nullptr, kConfig});
  all.push_back({"no-taint", no_argument, nullptr, kNoTaint});
  all.push_back({"no-events", no_argument, nullptr, kNoEvents});
  all.push_back({"once", no_argument, nullptr, kOnce});
  all.push_back({"withdraw", no_argument, nullptr, kWithdraw});
  all.push_back({"dry-run", no_argument, nullptr, kDryRun});
  all.push_back({"help", no_argument, nullptr, kHelpFlag});
  all.push_back({"version", no_argument, nullptr, kVersionFlag});
  return all;
}

ExitStatus wrong_use(const std::string& message) {
  fmt::print(stderr, "berth-kube: {}\n", model::plain_text(message, model::kMostLineBytes));
  return ExitStatus::wrong_use;
}

model::Result<void> read_config(Options& options, const std::string& path, bool must_be_there) {
  const auto file = os::open_user_file(path);
  if (!file && file.error().kind() == model::ErrorKind::gone && !must_be_there) return {};
  if (!file) return model::fail(file.error());
  std::string text;
  if (!os::read_up_to(file->get(), kMaxConfigBytes + 1, text))
    return model::fail(model::Error::from_errno(errno, path));
  if (text.size() > kMaxConfigBytes)
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("{} is longer than {} bytes", path, kMaxConfigBytes));
  return apply_config(options, text, path);
}

void set_flag(Options& options, int flag) {
  if (flag == kNoTaint) options.taint = false;
  if (flag == kNoEvents) options.events = false;
  if (flag == kOnce) options.once = true;
  if (flag == kWithdraw) options.withdraw = true;
  if (flag == kDryRun) options.dry_run = true;
}

}  // namespace

std::variant<Options, ExitStatus> parse_options(int argc, char* const* argv, const std::string& host) {
  // It is taken once for --config and then for all other options.
  const integrations::CommandLine line("berth-kube", argc, argv, long_options());
  std::optional<std::string> config;
  const auto first = [&](int flag, const char* name, std::string_view value) -> std::optional<ExitStatus> {
    if (flag == kConfig) {
      config = value;
      if (const auto why = why_no_path(value)) return line.wrong_value(name, value, *why);
    }
    if (flag == kHelpFlag) fmt::print("{}", kHelp);
    if (flag == kVersionFlag) fmt::print("berth-kube {}\n", BERTH_VERSION);
    return flag == kHelpFlag || flag == kVersionFlag ? std::optional(ExitStatus::done) : std::nullopt;
  };
  if (const auto status = line.each(first)) return *status;

  Options options;
  if (const auto read = read_config(options, config.value_or(kDefaultConfig), config.has_value()); !read)
    return wrong_use(read.error().message());
  const auto second = [&](int flag, const char* name, std::string_view value) -> std::optional<ExitStatus> {
    set_flag(options, flag);
    const auto settings = known_settings();
    if (flag > static_cast<int>(settings.size())) return std::nullopt;
    const auto why = settings[static_cast<std::size_t>(flag) - 1].take(options, value);
    if (!why) return std::nullopt;
    return line.wrong_value(name, value, *why);
  };
  if (const auto status = line.each(second)) return *status;

  if (options.node.empty()) {
    for (const char c : host) options.node += model::lower(c);
    if (const auto why = model::why_no_subdomain(options.node))
      return line.wrong_option(fmt::format("the host's name is no node's: {}; give --node NAME", *why));
  }
  if (const auto why = why_no_access(options.access); why && !options.dry_run) return line.wrong_option(*why);
  return options;
}

}  // namespace berth::kubernetes
