// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <curl/curl.h>

namespace berth::spark {

// What is called of libcurl. Loaded when the first driver is asked, and kept from then on: with what it needs
// in turn (TLS, HTTP/2, Kerberos) it is as much memory as the rest of berthd, which hosts without Spark have
// no use for.
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

// Error `unavailable` where the host has no such library, which says why.
model::Result<LibCurl> load_libcurl();

}  // namespace berth::spark
