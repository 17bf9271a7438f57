// SPDX-License-Identifier: Apache-2.0

#include "integrations/kubernetes/options.h"
#include "model/dns_name.h"
#include "model/number.h"
#include "model/text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include <fmt/core.h>
#include <toml++/toml.h>

namespace berth::kubernetes {

namespace {

using Refusal = std::optional<std::string>;

constexpr std::size_t kMaxPathBytes = 4095;
constexpr std::size_t kMaxUrlBytes = 2048;
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";

Refusal take_path(std::string& target, std::string_view value) {
  target = value;
  return why_no_path(value);
}

Refusal take_number(double& target, std::string_view value, double lowest, double highest) {
  const auto number = model::to_number<double>(value);
  // Not a number is neither.
  if (!number || !(*number >= lowest && *number <= highest))
    return fmt::format("it is no number from {} to {}", lowest, highest);
  target = *number;
  return std::nullopt;
}

Refusal take_node(Options& options, std::string_view value) {
  options.node = value;
  return model::why_no_subdomain(value);
}

Refusal take_domain(Options& options, std::string_view value) {
  options.domain = value;
  return model::why_no_resource_domain(value);
}

Refusal take_relocate(Options& options, std::string_view value) {
  if (value != "report" && value != "evict") return "it is neither report nor evict";
  options.relocate = value == "evict" ? Relocate::evict : Relocate::report;
  return std::nullopt;
}

Refusal take_end(Options& options, std::string_view value) {
  if (value != "report" && value != "evict") return "it is neither report nor evict";
  options.end = value == "evict" ? Relocate::evict : Relocate::report;
  return std::nullopt;
}

// "HOST" of "HOST:PORT/PATH"; an IPv6 address keeps its brackets.
std::string_view host_of(std::string_view rest) {
  if (rest.starts_with('[')) return rest.substr(0, std::min(rest.find(']'), rest.size() - 1) + 1);
  return rest.substr(0, std::min(rest.find_first_of(":/"), rest.size()));
}

bool is_loopback(std::string_view host) {
  return host == "127.0.0.1" || host == "[::1]" || host == "localhost";
}

Refusal take_server(Options& options, std::string_view value) {
  const bool secure = value.starts_with(kHttps);
  if (!secure && !value.starts_with(kHttp)) return "it begins with neither https:// nor http://";
  std::string_view rest = value.substr(secure ? kHttps.size() : kHttp.size());
  const auto allowed = [](char c) {
    return model::is_visible(c) && std::string_view("@?#\\").find(c) == std::string_view::npos;
  };
  if (value.size() > kMaxUrlBytes || host_of(rest).empty() || !std::all_of(rest.begin(), rest.end(), allowed))
    return "it is no URL of a server";
  if (!secure && !is_loopback(host_of(rest))) return "without TLS it may be a loopback address alone";
  options.access.server = model::trimmed_end(value, "/");
  return std::nullopt;
}

constexpr std::array kSettings{
    Setting{"node", Setting::Type::text, take_node},
    Setting{"server", Setting::Type::text, take_server},
    Setting{"ca", Setting::Type::text,
            [](Options& options, std::string_view value) { return take_path(options.access.ca, value); }},
    Setting{"token", Setting::Type::text,
            [](Options& options, std::string_view value) { return take_path(options.access.token, value); }},
    Setting{"certificate", Setting::Type::text,
            [](Options& options, std::string_view value) {
              return take_path(options.access.certificate, value);
            }},
    Setting{"key", Setting::Type::text,
            [](Options& options, std::string_view value) { return take_path(options.access.key, value); }},
    Setting{"domain", Setting::Type::text, take_domain},
    Setting{"state", Setting::Type::text,
            [](Options& options, std::string_view value) { return take_path(options.state_file, value); }},
    Setting{"max-age", Setting::Type::number,
            [](Options& options, std::string_view value) {
              return take_number(options.max_age_s, value, 5, 86400);
            }},
    Setting{"interval", Setting::Type::number,
            [](Options& options, std::string_view value) {
              return take_number(options.interval_s, value, 5, 3600);
            }},
    Setting{"min-change", Setting::Type::number,
            [](Options& options, std::string_view value) {
              return take_number(options.min_change, value, 0, 1);
            }},
    Setting{"end", Setting::Type::text, take_end},
    Setting{"relocate", Setting::Type::text, take_relocate},
    Setting{"relocate-after", Setting::Type::number,
            [](Options& options, std::string_view value) {
              return take_number(options.relocate_after_s, value, 0, 3600);
            }},
};

using model::ErrorKind;

// As the command line would have the value; nullopt for a value of another type.
std::optional<std::string> text_of(const toml::node& node, Setting::Type type) {
  if (type == Setting::Type::text) return node.value<std::string>();
  if (!node.is_number()) return std::nullopt;
  const auto number = node.value<double>();
  return number ? std::optional(fmt::format("{}", *number)) : std::nullopt;
}

// Returns the reason for refusing the member.
std::optional<std::string> take(Options& options, std::string_view key, const toml::node& node) {
  if (key == "taint" || key == "events") {
    const auto flag = node.value_exact<bool>();
    if (!flag) return "it is neither true nor false";
    (key == "taint" ? options.taint : options.events) = *flag;
    return std::nullopt;
  }
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', '-');
  for (const Setting& setting : known_settings()) {
    if (setting.name != name || key.find('-') != std::string_view::npos) continue;
    const auto value = text_of(node, setting.type);
    if (!value) return setting.type == Setting::Type::text ? "it is no text in quotes" : "it is no number";
    return setting.take(options, *value);
  }
  // The options have these names.
  if (key == "no_taint" || key == "no_events")
    return fmt::format("there is no such setting; write {} = false", key.substr(3));
  return "there is no such setting (berth-kube(8))";
}

// toml++ calls text without quotes an undetermined type.
const char* bare_word_hint(const toml::parse_error& error) {
  const bool untyped = error.description().find("could not determine value type") != std::string_view::npos;
  return untyped ? "; text is written in quotes" : "";
}

}  // namespace

std::span<const Setting> known_settings() { return kSettings; }

std::optional<std::string> why_no_path(std::string_view text) {
  if (text.size() < 2 || text.size() > kMaxPathBytes || text.front() != '/') return "it is no absolute path";
  return std::nullopt;
}

std::optional<std::string> why_no_access(const Access& access) {
  if (access.server.empty()) return "which API server? give --server URL, or server in the file";
  if (access.certificate.empty() != access.key.empty()) return "--certificate and --key belong together";
  const bool secure = access.server.starts_with(kHttps);
  const bool known = !access.token.empty() || !access.key.empty();
  if (!secure && known) return "credentials do not go to a server without TLS";
  if (secure && !known) return "credentials are missing: give --token, or --certificate and --key";
  if (secure && access.ca.empty())
    return "--ca is missing: the file with the cluster's certificate authority";
  return std::nullopt;
}

model::Result<void> apply_config(Options& options, const std::string& text, const std::string& name) {
  try {
    const toml::table table = toml::parse(text);
    for (const auto& [key, node] : table) {
      if (const auto why = take(options, key.str(), node)) {
        return model::fail(ErrorKind::invalid_input,
                           fmt::format("{}:{}: {}: {}", name, key.source().begin.line, key.str(), *why));
      }
    }
  } catch (const toml::parse_error& error) {
    return model::fail(ErrorKind::invalid_input, fmt::format("{}:{}: {}{}", name, error.source().begin.line,
                                                             error.description(), bare_word_hint(error)));
  }
  return {};
}

}  // namespace berth::kubernetes
