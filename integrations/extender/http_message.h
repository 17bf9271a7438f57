// SPDX-License-Identifier: Apache-2.0
// The part of HTTP/1.1 (RFC 9112) for short questions with a body, and answers on a kept connection.
#pragma once

#include "integrations/extender/failure_log.h"
#include "model/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth::extender {

// Longer heads are refused.
inline constexpr std::size_t kMaxHeadBytes = std::size_t{8} << 10;

// The path of requests that may take long. They wait for all others.
inline constexpr std::string_view kSnapshotsPath = "/snapshots";

struct RequestHead {
  std::string method;
  std::string path;
  std::size_t head_bytes = 0;  // with the empty line
  std::size_t body_bytes = 0;
  bool keep = true;        // the connection, after the answer
  bool continues = false;  // the client waits for "100 Continue"
};

// Whether a client that sent `received` first speaks TLS: it begins with a handshake (RFC 8446, 5.1), and no
// request does.
bool is_tls(std::string_view received);

// Reads the head of a request that begins with `received`. nullopt while it is not whole. Error
// invalid_input: it is malformed, too long, or has a body of unknown length. Bytes that no request line has
// are an error at once.
model::Result<std::optional<RequestHead>> parse_head(std::string_view received);

struct Reply {
  int status = 200;
  std::string body;  // JSON
  // For the log: why the client gets a refusal.
  std::optional<Failure> failure = std::nullopt;
  std::string why = "";
  bool closes = false;  // the connection, after the answer
};

// A whole answer, to be written at once.
std::string to_text(const Reply& reply, bool keep);

}  // namespace berth::extender
