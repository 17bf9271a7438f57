// SPDX-License-Identifier: Apache-2.0
#include "ebpf/load.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

namespace berth::ebpf {

namespace {

// libbpf passes its messages to one function of the process, without a context of the caller's.
thread_local std::string* messages = nullptr;

__attribute__((format(printf, 2, 0))) int keep(libbpf_print_level level, const char* format,
                                               va_list arguments) {
  if (level == LIBBPF_DEBUG || !messages) return 0;
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(nullptr, 0, format, arguments);
  if (length > 0) {
    const std::size_t begin = messages->size();
    messages->resize(begin + static_cast<std::size_t>(length) + 1);
    vsnprintf(messages->data() + begin, static_cast<std::size_t>(length) + 1, format, again);
    messages->pop_back();
  }
  va_end(again);
  return 0;
}

class Kept {
 public:
  Kept() : before_(libbpf_set_print(keep)) { messages = &text_; }
  ~Kept() {
    messages = nullptr;
    libbpf_set_print(before_);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  libbpf_print_fn_t before_;
};

// The verifier's last word stands above its statistics; without a verifier, libbpf's first message says most.
std::string essence(const std::string& log) {
  std::string_view text = log;
  const auto statistics = text.find("\nprocessed ");
  if (statistics != std::string_view::npos) {
    text = text.substr(0, statistics);
    return std::string(text.substr(text.rfind('\n') + 1));
  }
  return std::string(text.substr(0, text.find('\n')));
}

model::ErrorKind kind_of(int errno_value) {
  switch (errno_value) {
    case EPERM:
    case EACCES:
      return model::ErrorKind::permission;
    case ENOENT:
    case ESRCH:
    case EINVAL:
    case ENOTSUP:
      return model::ErrorKind::unavailable;
    default:
      return model::ErrorKind::io;
  }
}

}  // namespace

model::Result<void> attempt(const std::string& name, const std::filesystem::path& log_directory,
                            const std::function<int()>& step) {
  const Kept kept;
  const int status = step();
  if (status >= 0) return {};
  std::string message = "BPF program " + name + ": " + std::strerror(-status);
  if (!kept.text().empty()) {
    message += ": " + essence(kept.text());
    if (!log_directory.empty()) {
      const auto path = log_directory / (name + ".log");
      std::ofstream file(path);
      file << kept.text();
      if (file.flush()) message += " (whole log in " + path.string() + ')';
    }
  }
  return model::fail(kind_of(-status), message);
}

}  // namespace berth::ebpf
