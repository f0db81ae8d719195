// SPDX-License-Identifier: Apache-2.0
// A header of the consumer that is named like one of ours.
#pragma once

namespace consumer {
inline constexpr bool kOwnOps = true;
}  // namespace consumer
