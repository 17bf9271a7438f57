// SPDX-License-Identifier: Apache-2.0
// As much of HTTP/1.1 (RFC 9112) as answering one GET or HEAD and closing takes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth::daemon {

// Longer requests, headers included, are refused.
inline constexpr std::size_t kMaxRequestBytes = 4096;

enum class HttpStatus : int { ok = 200, bad_request = 400, not_found = 404, method_not_allowed = 405 };

// What a request that begins with `received` is answered with, there being one resource, `path`; nullopt
// while that is not known yet. A query is ignored.
std::optional<HttpStatus> judge_request(std::string_view received, std::string_view path);

// Whether the answer to `request` has its body with it: not that to HEAD (RFC 9110, 9.3.2).
bool wants_body(std::string_view request);

// A whole response, after which the connection is closed. `body` is of `content_type`; other statuses than ok
// bring their own.
std::string http_response(HttpStatus status, std::string_view content_type = "", std::string_view body = "",
                          bool with_body = true);

}  // namespace berth::daemon
