// SPDX-License-Identifier: Apache-2.0
#include "spark/libcurl.h"

#include <string>

#include <dlfcn.h>

namespace berth::spark {

namespace {

constexpr const char* kName = "libcurl.so.4";  // its soname since 2006

template <typename Function>
bool take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::string problem() {
  const char* said = dlerror();
  return said == nullptr ? std::string(kName) + ": cannot be loaded" : said;
}

model::Result<LibCurl> load() {
  // Some of its dependencies cannot be unloaded while there are threads.
  void* library = dlopen(kName, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return model::fail(model::ErrorKind::unavailable, problem());
  LibCurl curl;
  decltype(&::curl_global_init) global_init = nullptr;
  if (!take(library, "curl_global_init", global_init) || !take(library, "curl_easy_init", curl.easy_init) ||
      !take(library, "curl_easy_setopt", curl.easy_setopt) ||
      !take(library, "curl_easy_perform", curl.easy_perform) ||
      !take(library, "curl_easy_getinfo", curl.easy_getinfo) ||
      !take(library, "curl_easy_strerror", curl.easy_strerror) ||
      !take(library, "curl_easy_cleanup", curl.easy_cleanup) ||
      !take(library, "curl_slist_append", curl.slist_append) ||
      !take(library, "curl_slist_free_all", curl.slist_free_all)) {
    return model::fail(model::ErrorKind::unavailable, problem());
  }
  // Plain HTTP needs no global initialisation, and that of TLS is slow.
  if (global_init(CURL_GLOBAL_NOTHING) != CURLE_OK)
    return model::fail(model::ErrorKind::unavailable, std::string(kName) + ": cannot be set up");
  return curl;
}

}  // namespace

model::Result<LibCurl> load_libcurl() {
  static const model::Result<LibCurl> loaded = load();
  return loaded;
}

}  // namespace berth::spark
