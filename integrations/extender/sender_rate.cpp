// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/sender_rate.h"

#include "integrations/extender/snapshot_bounds.h"

namespace berth::extender {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

// The index after the text that begins with the quotation mark at `at`, or the end of the document.
std::size_t end_of_text(std::string_view document, std::size_t at) {
  for (++at; at < document.size(); ++at) {
    if (document[at] == '\\')
      ++at;
    else if (document[at] == '"')
      return at + 1;
  }
  return document.size();
}

// The index of the first character that is no space.
std::size_t after_space(std::string_view document, std::size_t at) {
  const std::size_t found = document.find_first_not_of(kSpace, at);
  return found == std::string_view::npos ? document.size() : found;
}

// A text without escapes at the index.
std::optional<std::string_view> plain_text_at(std::string_view document, std::size_t at) {
  if (at >= document.size() || document[at] != '"') return std::nullopt;
  const std::size_t end = end_of_text(document, at);
  const std::string_view text = document.substr(at + 1, end - at - 1);
  if (text.empty() || text.back() != '"') return std::nullopt;
  const std::string_view inside = text.substr(0, text.size() - 1);
  if (inside.empty() || inside.size() > kMaxHostNameBytes || inside.find('\\') != std::string_view::npos)
    return std::nullopt;
  return inside;
}

}  // namespace

std::optional<std::string_view> named_host(std::string_view document) {
  std::size_t level = 0;
  for (std::size_t at = 0; at < document.size();) {
    const char c = document[at];
    if (c == '{' || c == '[') ++level;
    if ((c == '}' || c == ']') && level > 0) --level;
    if (c != '"') {
      ++at;
      continue;
    }
    const std::size_t end = end_of_text(document, at);
    const bool is_host = level == 1 && document.substr(at, end - at) == "\"host\"";
    at = after_space(document, end);
    if (is_host && at < document.size() && document[at] == ':')
      return plain_text_at(document, after_space(document, at + 1));
  }
  return std::nullopt;
}

std::optional<double> SenderRate::wait_s(std::string_view host, double now_s) {
  while (!in_order_.empty() && in_order_.front().first <= now_s) {
    until_s_.erase(in_order_.front().second);
    in_order_.pop_front();
  }
  const auto found = until_s_.find(host);
  return found == until_s_.end() ? std::nullopt : std::optional(found->second - now_s);
}

void SenderRate::count(std::string_view host, double now_s) {
  if (pause_s_ <= 0 || wait_s(host, now_s)) return;
  const double until_s = now_s + pause_s_;
  until_s_.emplace(host, until_s);
  in_order_.emplace_back(until_s, host);
  if (in_order_.size() <= most_names_) return;
  until_s_.erase(in_order_.front().second);
  in_order_.pop_front();
}

}  // namespace berth::extender
