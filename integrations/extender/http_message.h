// SPDX-License-Identifier: Apache-2.0
// The part of HTTP/1.1 (RFC 9112) for short questions with a body, and answers on a kept connection.
#pragma once

#include "model/error.h"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace berth::extender {

// Why a client of `berthctl serve` got no answer to its request, or a refusal.
enum class Failure {
  tls,          // the client speaks TLS
  malformed,    // no request that can be read
  too_long,     // the body is longer than allowed
  too_much,     // all unfinished requests together are
  too_slow,     // the request, its answer, or the reading of the answer took too long
  hung_up,      // in the middle of a request, or before its answer
  connections,  // another client needed the connection
  descriptors,  // the process may open no more files
  question,     // of the scheduler: it cannot be read
  snapshot,     // it was refused
  path,         // there is no such path, or it takes another method
  internal,     // the program failed
};
inline constexpr std::size_t kFailures = static_cast<std::size_t>(Failure::internal) + 1;

// Says failures in lines for a log. A client can fail as often as it likes, so each kind of failure has one
// line a minute: at once if the last minute had none, else at its end, with their number.
class FailureLog {
 public:
  // `say` takes one line, which is not yet safe to print.
  using Say = std::function<void(const std::string& line)>;
  static constexpr double kPause_s = 60;

  explicit FailureLog(Say say) : say_(std::move(say)) {}

  // `client`: its address. `why` may be empty. Times are seconds of a clock that never steps.
  void add(Failure failure, const std::string& client, const std::string& why, double now_s);
  // Says failures whose pause is over. To be called now and then.
  void say_waiting(double now_s);

 private:
  struct Kind {
    std::optional<double> said_s;
    std::size_t waiting = 0;  // failures since then
    std::string last;         // the line of the last of these
  };

  Say say_;
  std::array<Kind, kFailures> kinds_;
};

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
