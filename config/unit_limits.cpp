// SPDX-License-Identifier: Apache-2.0
#include "config/unit_limits.h"

#include "config/wording.h"

#include <cstdint>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>

namespace berth::config {

namespace {

constexpr std::uint16_t kFirstFreePort = 1024;

bool is_below(const std::string& path, std::string_view directory) {
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

// The reason why the unit hides a file of another program; "" where it sees it.
std::string hidden(const std::string& path) {
  for (const char* home : {"/home", "/root", "/run/user"}) {
    if (is_below(path, home)) return fmt::format("berthd.service sees nothing below {} (ProtectHome=)", home);
  }
  for (const char* temporary : {"/tmp", "/var/tmp"}) {
    if (is_below(path, temporary))
      return fmt::format("berthd.service has a {} of its own (PrivateTmp=)", temporary);
  }
  return "";
}

std::string forbidden_socket(const std::string& path) {
  if (auto why = hidden(path); !why.empty()) return why;
  for (const char* open : {"/run/berth", "/var/lib/berth", "/etc/berth", "/run/systemd"}) {
    if (is_below(path, open)) return "";
  }
  return "berthd.service may not write there (ProtectSystem=)";
}

}  // namespace

std::vector<std::string> forbidden_by_unit(const Settings& settings) {
  std::vector<std::string> forbidden;
  const ListenAddress& listen = settings.metrics_listen;
  if (listen.kind == ListenAddress::Kind::unix_socket) {
    const std::string path = std::filesystem::path(listen.path).lexically_normal().native();
    if (const auto why = forbidden_socket(path); !why.empty())
      forbidden.push_back(
          fmt::format("metrics.listen: {}: {}; take a path below /run/berth", quote(path), why));
  } else if (listen.kind != ListenAddress::Kind::none && listen.port < kFirstFreePort) {
    forbidden.push_back(
        fmt::format("metrics.listen: port {}: berthd.service may not listen below {} "
                    "(CapabilityBoundingSet=); take a higher port",
                    listen.port, kFirstFreePort));
  }
  for (const model::WorkloadRule& rule : settings.rules) {
    if (!rule.progress_file) continue;
    const std::string path = std::filesystem::path(*rule.progress_file).lexically_normal().native();
    if (const auto why = hidden(path); !why.empty()) {
      forbidden.push_back(fmt::format("{}: progress: {}: {}; take a path below /run or /var/lib", rule.origin,
                                      quote(path), why));
    }
  }
  return forbidden;
}

}  // namespace berth::config
