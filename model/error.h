// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace berth::model {

// The kind of an error tells the caller how to react; the message is for people.
enum class ErrorKind {
  invalid_input,  // a file, document or argument is wrong; the message names where
  io,             // the system refused; permanent until something changes
  gone,           // the thing vanished meanwhile (a cgroup, a process, a unit)
  transient,      // worth another try (EINTR, EAGAIN, EBUSY)
  permission,     // EACCES, EPERM, EROFS
  unavailable,    // this host or build lacks it (no bus, no controller)
  refused,        // understood, and the answer is no
};

// One failure: the attempt, the object of the attempt, and the cause. Functions return it in a Result. Each
// caller prefixes the message with its own attempt.
class Error {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  // "WHAT: strerror(ERRNO)", the kind taken from errno: ENOENT/ENODEV/ESRCH are gone, EINTR/EAGAIN/EBUSY
  // transient, EACCES/EPERM/EROFS permission, anything else io.
  static Error from_errno(int errno_value, std::string_view what);

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  // 0 where no system call was involved.
  int errno_value() const { return errno_; }

  // The same error, its message prefixed by "OUTER: ".
  Error context(std::string_view outer) const;

 private:
  ErrorKind kind_;
  std::string message_;
  int errno_ = 0;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::unexpected<Error>(Error(kind, std::move(message)));
}

}  // namespace berth::model
