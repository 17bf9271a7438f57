// SPDX-License-Identifier: Apache-2.0
#include "model/dns_name.h"

#include <algorithm>
#include <cstddef>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr std::size_t kMaxSubdomainBytes = 253;
constexpr std::string_view kQuotaPrefix = "requests.";

bool is_small_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

std::optional<std::string> why_no_subdomain(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kMaxSubdomainBytes) return "it is longer than 253 bytes";
  const auto allowed = [](char c) { return is_small_letter_or_digit(c) || c == '-' || c == '.'; };
  if (!std::all_of(name.begin(), name.end(), allowed))
    return "it has other characters than small letters, digits, hyphens and dots";
  if (!is_small_letter_or_digit(name.front()) || !is_small_letter_or_digit(name.back()) ||
      name.find("..") != std::string_view::npos)
    return "each of its parts begins and ends with a letter or a digit";
  return std::nullopt;
}

std::optional<std::string> why_no_resource_domain(std::string_view domain) {
  if (auto why = why_no_subdomain(domain)) return why;
  constexpr std::size_t kMost = kMaxSubdomainBytes - kQuotaPrefix.size();
  if (domain.size() > kMost) return fmt::format("it is longer than {} bytes", kMost);
  if (domain.ends_with("kubernetes.io") || domain == "k8s.io" || domain.ends_with(".k8s.io"))
    return "Kubernetes keeps this domain for itself; take a domain of your own";
  if (domain.starts_with(kQuotaPrefix)) return "Kubernetes keeps the beginning \"requests.\" for quotas";
  return std::nullopt;
}

}  // namespace berth::model
