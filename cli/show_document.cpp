// SPDX-License-Identifier: Apache-2.0
#include "cli/show_document.h"

#include <ostream>

namespace berth::cli {

Outcome<void> show_document(Session& session, const std::string& text, const char* what,
                            const std::function<void(const Document&)>& render) {
  if (session.json) {
    session.out << text << "\n";
    return {};
  }
  const auto document = parse_document(text, what);
  if (!document) return tl::unexpected(document.error());
  render(*document);
  return {};
}

}  // namespace berth::cli
