/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of io.handoffd.Agent.varlink, embedded in the program by the build. */
#pragma once

extern const char io_handoffd_Agent_varlink[];
