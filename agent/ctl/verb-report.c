/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl report: the course of a migration as a chart. */
#include "agent/ctl/call.h"
#include "agent/ctl/chart-svg.h"
#include "agent/ctl/chart-text.h"
#include "agent/ctl/follow.h"
#include "agent/ctl/print.h"
#include "agent/ctl/progress.h"
#include "agent/ctl/report.h"

#include <stdio.h>
#include <stdlib.h>

static void print_end(Term *term, const Report *report) {
  ProgressInput input = {.job = &report->job,
                         .percent = MAX(report->job.percent, 0),
                         .now_us = g_get_real_time(),
                         .away_ms = -1};

  if (mig_phase_is_final(report->job.phase)) {
    follow_summary(term, &report->job);
  } else {
    g_autofree char *line = progress_line(&input);

    print_field(term, "so far", "%s", line);
    if (report->job.next_action)
      print_field(term, "next", "%s", report->job.next_action);
  }
}

static void print_chart(Term *term, const Report *report) {
  g_autofree char *subtitle = report_subtitle(report);

  term_print(term, "%s\n", subtitle);
  if (report->points->len == 0) {
    term_print(term, REPORT_NO_READINGS "\n");
  } else {
    g_autofree char *chart = chart_text(report, term_width(term), term->utf8);
    g_autofree char *stages = report_stages(report);

    term_print(term, "\n%s\n", chart);
    print_field(term, "stages", "%s", stages);
  }
  if (report->marks->len > 0) {
    g_autofree char *marks = chart_text_marks(report, term_width(term));

    term_print(term, "decisions\n%s", marks);
  }
}

static void print_report(Ctl *ctl, const Report *report) {
  g_autofree char *title = report_title(report);

  term_print(&ctl->term, "%s\n", title);
  if (report->started)
    print_chart(&ctl->term, report);
  else
    term_print(&ctl->term, "The migration %s.\n",
               mig_phase_is_final(report->job.phase) ? "never started" : "has not started yet");
  print_end(&ctl->term, report);
}

/* The output of print_end() as a string; to be freed by free(). */
static char *end_text(const Report *report) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  Term term = {.out = stream, .err = stream, .utf8 = true};

  print_end(&term, report);
  fclose(stream);
  return text;
}

static ExitStatus write_svg(Ctl *ctl, const Report *report) {
  const char *path = ctl->options.svg;
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) svg = NULL;
  char *closing;

  if (!report->started) {
    g_autofree char *message = g_strdup_printf(
        "The migration has not started, so there is nothing to draw: %s was not written.", path);

    return ctl_fail(ctl, FAILURE_NOTHING, message);
  }
  closing = end_text(report);
  svg = chart_svg(report, closing, &error);
  free(closing);
  if (!svg || !chart_svg_write(path, svg, &error)) {
    g_autofree char *message = g_strdup_printf("Could not write %s: %s", path, error->message);

    return ctl_fail(ctl, FAILURE_OUTPUT, message);
  }
  if (!ctl->options.json)
    term_print(&ctl->term, "Wrote the chart to %s.\n", path);
  return EXIT_DONE;
}

static ExitStatus take_reply(Ctl *ctl, json_t *reply) {
  g_auto(Report) report = {0};

  if (!report_read(reply, &report))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply to GetHistory contains no valid job.");
  if (!ctl_print_json(ctl, reply))
    print_report(ctl, &report);
  return ctl->options.svg ? write_svg(ctl, &report) : EXIT_DONE;
}

ExitStatus verb_report(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.GetHistory",
                 json_pack("{s:s}", "job", ctl->options.args[0]), take_reply);
}
