// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/http.h"

#include "model/text.h"

#include <algorithm>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

using model::equal_ignoring_case;
using model::is_visible;
using model::take_part;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHead = "HEAD";

// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  constexpr std::string_view kSeparators = "\"(),/:;<=>?@[\\]{}";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_visible(c) && kSeparators.find(c) == std::string_view::npos;
  });
}

struct RequestLine {
  std::string_view method;
  std::string_view target;
  std::string_view version;
};

std::optional<RequestLine> parse_request_line(std::string_view line) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return std::nullopt;
  const RequestLine parsed{line.substr(0, first), line.substr(first + 1, last - first - 1),
                           line.substr(last + 1)};
  const bool visible = std::all_of(parsed.target.begin(), parsed.target.end(), is_visible);
  const bool known = parsed.version == "HTTP/1.1" || parsed.version == "HTTP/1.0";
  if (!is_token(parsed.method) || parsed.target.empty() || !visible || !known) return std::nullopt;
  return parsed;
}

// The path of the origin form, or of the absolute form, which a server must accept (RFC 9112, 3.2.2); without
// the query.
std::string_view path_of(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (equal_ignoring_case(target.substr(0, kScheme.size()), kScheme)) {
    target.remove_prefix(kScheme.size());
    target.remove_prefix(std::min(target.find('/'), target.size()));
  }
  return target.substr(0, target.find('?'));
}

// Checks header lines, without the empty line that ends them. RFC 9112, 3.2: exactly one Host, except in
// HTTP/1.0.
bool are_fields(std::string_view text, bool host_wanted) {
  int hosts = 0;
  while (!text.empty()) {
    const auto line = take_part(text, kLineEnd);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
    const auto value = line.substr(colon + 1);
    if (value.find_first_of(std::string_view("\0\r\n", 3)) != std::string_view::npos) return false;
    if (equal_ignoring_case(line.substr(0, colon), "host")) ++hosts;
  }
  return hosts == 1 || (hosts == 0 && !host_wanted);
}

std::string_view trimmed(std::string_view text) { return model::trimmed(text, model::kBlanks); }

// A weight in thousandths, 0 to 1000 (RFC 9110, 12.4.2); 0 for anything else.
int weight_of(std::string_view text) {
  int weight = 0;
  int digits = 0;
  for (const char c : text) {
    if (c == '.' && digits == 1) continue;
    if (c < '0' || c > '9' || digits == 4) return 0;
    weight = weight * 10 + (c - '0');
    ++digits;
  }
  for (; digits > 0 && digits < 4; ++digits) weight *= 10;
  return std::min(weight, 1000);
}

// The highest weight of OpenMetrics and of plain text in an Accept header.
struct Wishes {
  int openmetrics = 0;
  int plain = 0;
};

Wishes wishes_in(std::string_view accept) {
  Wishes wishes;
  while (!accept.empty()) {
    std::string_view range = take_part(accept, ",");
    const auto type = trimmed(take_part(range, ";"));
    int weight = 1000;
    bool known_version = true;
    while (!range.empty()) {
      std::string_view parameter = take_part(range, ";");
      const auto name = trimmed(take_part(parameter, "="));
      if (equal_ignoring_case(name, "q")) weight = weight_of(trimmed(parameter));
      if (equal_ignoring_case(name, "version"))
        known_version = trimmed(parameter) == "1.0.0" || trimmed(parameter) == "0.0.1";
    }
    if (equal_ignoring_case(type, "application/openmetrics-text") && known_version)
      wishes.openmetrics = std::max(wishes.openmetrics, weight);
    if (equal_ignoring_case(type, "text/plain")) wishes.plain = std::max(wishes.plain, weight);
  }
  return wishes;
}

// Such a request is refused before it is complete: no HTTP client begins like this.
bool cannot_become_a_request(std::string_view received) {
  const auto end = received.find(kLineEnd);
  if (end != std::string_view::npos) return !parse_request_line(received.substr(0, end));
  const bool perhaps_ended = !received.empty() && received.back() == '\r';
  const auto line = received.substr(0, received.size() - (perhaps_ended ? 1 : 0));
  return !std::all_of(line.begin(), line.end(), [](char c) { return is_visible(c) || c == ' '; });
}

const char* reason(HttpStatus status) {
  switch (status) {
    case HttpStatus::ok:
      return "OK";
    case HttpStatus::bad_request:
      return "Bad Request";
    case HttpStatus::not_found:
      return "Not Found";
    case HttpStatus::method_not_allowed:
      return "Method Not Allowed";
  }
  return "";
}

}  // namespace

std::optional<HttpStatus> judge_request(std::string_view received, std::string_view path) {
  if (cannot_become_a_request(received)) return HttpStatus::bad_request;
  const auto head_end = received.find("\r\n\r\n");
  if (head_end == std::string_view::npos) {
    if (received.size() < kMaxRequestBytes) return std::nullopt;
    return HttpStatus::bad_request;
  }
  const auto line_end = received.find(kLineEnd);
  const auto request = parse_request_line(received.substr(0, line_end));
  const auto fields = received.substr(line_end + kLineEnd.size(), head_end - line_end);
  if (!request || !are_fields(fields, request->version == "HTTP/1.1")) return HttpStatus::bad_request;
  if (path_of(request->target) != path) return HttpStatus::not_found;
  return request->method == "GET" || request->method == kHead ? HttpStatus::ok
                                                              : HttpStatus::method_not_allowed;
}

bool prefers_openmetrics(std::string_view request) {
  Wishes wishes;
  while (!request.empty()) {
    const auto line = take_part(request, kLineEnd);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !equal_ignoring_case(line.substr(0, colon), "accept")) continue;
    const Wishes more = wishes_in(line.substr(colon + 1));
    wishes.openmetrics = std::max(wishes.openmetrics, more.openmetrics);
    wishes.plain = std::max(wishes.plain, more.plain);
  }
  return wishes.openmetrics > 0 && wishes.openmetrics >= wishes.plain;
}

bool wants_body(std::string_view request) { return request.substr(0, request.find(' ')) != kHead; }

std::string http_response(HttpStatus status, std::string_view content_type, std::string_view body,
                          bool with_body) {
  const std::string explanation = fmt::format("{}\n", reason(status));
  const bool ok = status == HttpStatus::ok;
  const std::string_view shown = ok ? body : explanation;
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      static_cast<int>(status), reason(status), ok ? content_type : "text/plain; charset=utf-8", shown.size(),
      status == HttpStatus::method_not_allowed ? "Allow: GET, HEAD\r\n" : "", with_body ? shown : "");
}

}  // namespace berth::daemon
