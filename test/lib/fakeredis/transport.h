/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_FAKEREDIS_TRANSPORT_H
#define SNIB_TEST_FAKEREDIS_TRANSPORT_H

/*
 * The Redis engine's transport straight into a fakeredis, without a network in between: what is
 * sent is executed at once. The transport's argument is the struct fakeredis, which outlives the
 * engine.
 */

#include "engine/net/transport.h"

extern const struct snib__transport fakeredis_transport;

#endif
