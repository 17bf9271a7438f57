// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <curl/curl.h>

namespace berth::spark {

// The functions of libcurl that are called. The first request to a driver loads the library, and it stays
// loaded. With its own dependencies (TLS, HTTP/2, Kerberos) it takes as much memory as the rest of berthd.
// Hosts without Spark do not need it.
struct LibCurl {
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

// Error `unavailable` where the host has no such library; the message has the reason.
model::Result<LibCurl> load_libcurl();

}  // namespace berth::spark
