// SPDX-License-Identifier: Apache-2.0
#include "model/error.h"

#include <cerrno>
#include <system_error>

#include <fmt/core.h>

namespace berth::model {

namespace {

ErrorKind kind_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ENODEV:
    case ESRCH:
      return ErrorKind::gone;
    case EINTR:
    case EAGAIN:
    case EBUSY:
      return ErrorKind::transient;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorKind::permission;
    default:
      return ErrorKind::io;
  }
}

}  // namespace

Error Error::from_errno(int errno_value, std::string_view what) {
  Error error(kind_of(errno_value),
              fmt::format("{}: {}", what, std::generic_category().message(errno_value)));
  error.errno_ = errno_value;
  return error;
}

Error Error::context(std::string_view outer) const {
  Error error = *this;
  error.message_ = fmt::format("{}: {}", outer, message_);
  return error;
}

}  // namespace berth::model
