// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/http_message.h"

#include "model/number.h"
#include "model/text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace berth::extender {

namespace {

using model::equal_ignoring_case;
using model::ErrorKind;
using model::is_visible;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

bool all_visible(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_visible);
}

tl::unexpected<model::Error> malformed(const char* why) { return model::fail(ErrorKind::invalid_input, why); }

// "POST /filter HTTP/1.1"
model::Result<RequestHead> parse_line(std::string_view line) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return malformed("the request line is malformed");
  const auto version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return malformed("the version is not HTTP/1.1");
  RequestHead head;
  head.method = line.substr(0, first);
  head.path = line.substr(first + 1, last - first - 1);
  head.keep = version == "HTTP/1.1";
  if (!all_visible(head.method) || !all_visible(head.path)) return malformed("the request line is malformed");
  return head;
}

// Returns why the field is refused; "" for a good one.
const char* take_field(RequestHead& head, std::string_view line, bool& has_length) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !all_visible(line.substr(0, colon))) return "a header is malformed";
  const auto name = line.substr(0, colon);
  const auto value = model::trimmed(line.substr(colon + 1), model::kBlanks);
  if (equal_ignoring_case(name, "transfer-encoding")) return "the body's length is not known (chunked)";
  if (equal_ignoring_case(name, "connection") && equal_ignoring_case(value, "close")) head.keep = false;
  if (equal_ignoring_case(name, "expect") && equal_ignoring_case(value, "100-continue"))
    head.continues = true;
  if (!equal_ignoring_case(name, "content-length")) return "";
  const auto length = model::to_number<std::size_t>(value);
  // Two lengths could be understood in two ways.
  if (!length || has_length) return "the Content-Length is malformed";
  has_length = true;
  head.body_bytes = *length;
  return "";
}

const char* reason(int status) {
  constexpr std::array<std::pair<int, const char*>, 6> kReasons{{{200, "OK"},
                                                                 {400, "Bad Request"},
                                                                 {404, "Not Found"},
                                                                 {405, "Method Not Allowed"},
                                                                 {413, "Content Too Large"},
                                                                 {429, "Too Many Requests"}}};
  const auto* known = std::ranges::find(kReasons, status, &std::pair<int, const char*>::first);
  return known == kReasons.end() ? "Service Unavailable" : known->second;
}

// A longer reason is cut. Its text may come from the client.
constexpr std::size_t kMaxWhyBytes = 1000;

const char* what(Failure failure) {
  switch (failure) {
    case Failure::tls:
      return "the client speaks TLS, and berthctl serve does not: urlPrefix in the scheduler's configuration "
             "must begin with http://";
    case Failure::malformed:
      return "the request is not HTTP/1.1 as berthctl serve reads it";
    case Failure::too_long:
      return "the request is refused";
    case Failure::too_much:
      return "the connection is closed, because clients sent too much at once";
    case Failure::too_slow:
      return "the connection is closed at its deadline";
    case Failure::hung_up:
      return "the client hung up";
    case Failure::connections:
      return "the connection is closed for a newer one, because too many are open";
    case Failure::descriptors:
      return "no connection can be opened (LimitNOFILE= of the service is the limit)";
    case Failure::question:
      return "the scheduler's question cannot be read";
    case Failure::snapshot:
      return "the snapshot is refused";
    case Failure::path:
      return "the request is refused";
    case Failure::internal:
      break;
  }
  return "the request failed";
}

}  // namespace

bool is_tls(std::string_view received) {
  constexpr char kHandshake = 0x16;
  return !received.empty() && received.front() == kHandshake;
}

model::Result<std::optional<RequestHead>> parse_head(std::string_view received) {
  const auto begin = received.substr(0, received.find('\r'));
  if ((begin.empty() && !received.empty()) ||
      !std::all_of(begin.begin(), begin.end(), [](char c) { return c == ' ' || is_visible(c); }))
    return malformed("the request line is malformed");
  const auto end = received.substr(0, kMaxHeadBytes).find(kHeadEnd);
  if (end == std::string_view::npos) {
    if (received.size() >= kMaxHeadBytes) return malformed("the head is longer than 8 KiB");
    return std::optional<RequestHead>();
  }
  std::string_view rest = received.substr(0, end);
  const auto take_line = [&rest] { return model::take_part(rest, kLineEnd); };
  auto head = parse_line(take_line());
  if (!head) return model::fail(head.error());
  bool has_length = false;
  while (!rest.empty())
    if (const char* why = take_field(*head, take_line(), has_length); *why != '\0') return malformed(why);
  head->head_bytes = end + kHeadEnd.size();
  return std::optional(*std::move(head));
}

std::string to_text(const Reply& reply, bool keep) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}",
                     reply.status, reason(reply.status), reply.body.size(),
                     keep ? "" : "Connection: close\r\n", reply.body);
}

void FailureLog::add(Failure failure, const std::string& client, const std::string& why, double now_s) {
  std::string line =
      fmt::format("{}: {}{}{}", client, what(failure), why.empty() ? "" : ": ", why.substr(0, kMaxWhyBytes));
  Kind& kind = kinds_[static_cast<std::size_t>(failure)];
  ++kind.waiting;
  kind.last = std::move(line);
  say_waiting(now_s);
}

void FailureLog::say_waiting(double now_s) {
  for (Kind& kind : kinds_) {
    const double since_s = kind.said_s ? now_s - *kind.said_s : kPause_s;
    if (kind.waiting == 0 || since_s < kPause_s) continue;
    say_(kind.waiting == 1 ? kind.last
                           : fmt::format("{} (the last of {} failures of this kind in {:.0f} s)", kind.last,
                                         kind.waiting, since_s));
    kind = {.said_s = now_s, .waiting = 0, .last = {}};
  }
}

}  // namespace berth::extender
