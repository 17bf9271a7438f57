// SPDX-License-Identifier: Apache-2.0
// The files that TLS takes. OpenSSL and libcurl do not say which of them is at fault.
#pragma once

#include "integrations/kubernetes/https_api.h"

#include <cstddef>
#include <optional>
#include <string>

namespace berth::kubernetes {

// More of a file is not looked at.
inline constexpr std::size_t kMaxPemBytes = std::size_t{1} << 20;

// Why TLS cannot use the files of `access`: one of them cannot be opened, is no regular file, is empty, or
// has nothing of its kind in PEM (RFC 7468). It begins with the setting and the path: "ca /x/ca.crt is
// empty". nullopt if TLS may try, and for a server without TLS. Symbolic links are followed.
std::optional<std::string> why_no_pem_files(const Access& access);

}  // namespace berth::kubernetes
