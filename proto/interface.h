/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of io.handoffd.Agent.varlink, put into the program when it was built. */
#pragma once

extern const char io_handoffd_Agent_varlink[];
