// SPDX-License-Identifier: Apache-2.0
// The part of HTTP/1.1 (RFC 9112) for answering one GET or HEAD and closing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth::daemon {

// Longer requests, headers included, are refused.
inline constexpr std::size_t kMaxRequestBytes = 4096;

enum class HttpStatus : int { ok = 200, bad_request = 400, not_found = 404, method_not_allowed = 405 };

// The status for a request that begins with `received`, with `path` as the one resource; nullopt while that
// is not known yet. A query is ignored.
std::optional<HttpStatus> judge_request(std::string_view received, std::string_view path);

// Whether the client of a whole `request` would rather have OpenMetrics 1.0 or 0.0.1 than plain text (the
// Accept header; RFC 9110, 12.5.1). Without such a wish it gets plain text.
bool prefers_openmetrics(std::string_view request);

// Whether the answer to `request` has a body: not for HEAD (RFC 9110, 9.3.2).
bool wants_body(std::string_view request);

// A whole response, after which the connection is closed. `body` is of `content_type`; statuses other than ok
// have bodies of their own.
std::string http_response(HttpStatus status, std::string_view content_type = "", std::string_view body = "",
                          bool with_body = true);

}  // namespace berth::daemon
