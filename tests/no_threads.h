// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>

#include <pthread.h>

namespace berth::test {

// As long as it lives no thread can be started: their stacks would be larger than any address space.
class NoThreads {
 public:
  NoThreads() {
    if (::pthread_getattr_default_np(&before_) != 0) throw std::runtime_error("pthread_getattr_default_np");
    pthread_attr_t huge;
    ::pthread_getattr_default_np(&huge);
    ::pthread_attr_setstacksize(&huge, std::size_t{1} << 52U);
    const int error = ::pthread_setattr_default_np(&huge);
    ::pthread_attr_destroy(&huge);
    if (error != 0) throw std::runtime_error("pthread_setattr_default_np");
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace berth::test
