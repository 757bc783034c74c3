# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs of the race of policies, one object a line, to a table (or with $as_json to one JSON object).

def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor]
    else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def medians(key): map(.[key] // empty) | median;

# More silence than the policy allows: it bounds a switchover by max_downtime_ms, and a pause by max_pause_ms. A half and
# 100 ms more are forgiven: QEMU's estimate is of the dirty pages alone.
def goes_over: .success and
    ((.downtime_ms // .silence_ms) > 100 + 1.5 * (if .max_pause_ms > 0 then .max_pause_ms else .max_downtime_ms end));

def summary: {
    strategy: .[0].strategy,
    rounds: length,
    successes: (map(select(.success)) | length),
    ends: (map(.end + if .success or .cause == "NONE" or .cause == null then "" else " " + .cause end) | unique),
    over: (map(select(goes_over)) | length > length / 2),
    total_ms: medians("total_ms"),
    silence_ms: medians("silence_ms"),
    downtime_ms: medians("downtime_ms"),
    lost_ms: medians("lost_ms"),
    bytes: medians("bytes"),
    throttle_pct: (map(.throttle_pct // 0) | max),
    bad: (map(select((.bad_pages // 0) > 0 or (.misplaced // false))) | length)
};
def finished: .successes == .rounds;
def is_peer: .strategy | startswith("handoffd") | not;
def ratio($mine; $theirs): if $theirs > 0 then $mine / $theirs else null end;

# Ours beside the best of the peers, in each measure by itself; and the peers that beat it by 5 % in one without losing in
# the other.
def marks: (map(select(.strategy == "handoffd")) | first // null) as $ours
    | map(select(is_peer and finished and (.over | not))) as $peers
    | if $ours == null then null else {
        finished: ($ours | finished),
        over: $ours.over,
        gives_up_ms: (if $ours | finished then null else $ours.total_ms end),
        best_verdict: (map(select(is_peer and .successes == 0 and (.ends | all(startswith("aborted")))))
            | min_by(.total_ms) | if . == null then null else {strategy, total_ms} end),
        best_total: ($peers | min_by(.total_ms) | if . == null then null else {strategy, total_ms} end),
        best_silence: ($peers | min_by(.silence_ms) | if . == null then null else {strategy, silence_ms} end)
      }
      | .total_ratio = (if .best_total and .finished then ratio($ours.total_ms; .best_total.total_ms) else null end)
      | .silence_ratio = (if .best_silence and .finished then ratio($ours.silence_ms; .best_silence.silence_ms) else null end)
      | .beaten_by = (if .finished then [$peers[]
            | select((.total_ms * 1.05 < $ours.total_ms and .silence_ms <= $ours.silence_ms * 1.05) or
                (.silence_ms * 1.05 < $ours.silence_ms and .total_ms <= $ours.total_ms * 1.05)) | .strategy]
          else [$peers[].strategy] end)
      end;

def fixed($digits): if . == null then "-" else
    pow(10; $digits) as $unit | (. * $unit | round) as $n
    | if $digits == 0 then "\($n)" else "\($n / $unit | floor).\("0000\($n % $unit)"[-$digits:])" end end;
def left($width): . + " " * ([$width - length, 0] | max);
def right($width): " " * ([$width - length, 0] | max) + .;

def row: "  " + (.strategy | left(29)) + ("\(.successes)/\(.rounds)" | right(5))
    + (.total_ms | if . == null then . else . / 1000 end | fixed(1) | right(9))
    + ((.silence_ms | fixed(0)) + (if .over then "!" else " " end) | right(10))
    + (.lost_ms | fixed(0) | right(9)) + (.bytes | if . == null then . else . / 1048576 end | fixed(0) | right(8))
    + (.throttle_pct | fixed(0) | right(6)) + "  " + (.ends | join(", "))
    + (if .bad > 0 then "  BAD MEMORY OR PLACE in \(.bad)" else "" end);

def mark_line: if . == null then empty
    elif .best_total == null then "  = no peer finishes within the policy; handoffd "
        + if .finished then "does" else "neither, and knows it after \(.gives_up_ms / 1000 | fixed(1)) s"
            + (if .best_verdict then ", the first of them after \(.best_verdict.total_ms / 1000 | fixed(1)) s (\(.best_verdict.strategy))"
               else "" end) end
    else "  = handoffd: total " + (.total_ratio | fixed(2)) + " of " + .best_total.strategy
        + ", silence " + (.silence_ratio | fixed(2)) + " of " + .best_silence.strategy
        + (if .over then "; more silence than permitted" else "" end)
        + (if .beaten_by == [] then "; nobody beats it" else "; beaten by " + (.beaten_by | join(", ")) end) end;

[inputs] as $runs
| [$runs | to_entries[] | .value + {order: .key}]
| group_by([.guest, .policy]) | sort_by(.[0].order)
| map({where: .[0].where, guest: .[0].guest, policy: .[0].policy,
       rows: (group_by(.strategy) | map({order: (map(.order) | min), row: summary}) | sort_by(.order) | map(.row))}
      | .marks = (.rows | marks))
| if $as_json then {races: ., runs: $runs}
  else .[]
    | "\(.where): guest \(.guest), policy \(.policy)",
      "  " + ("strategy" | left(29)) + " ends" + ("total s" | right(9)) + ("silence ms" | right(11)) + ("lost ms" | right(8))
          + ("MiB" | right(8)) + ("thr%" | right(6)) + "  end",
      (.rows[] | row), (.marks | mark_line), ""
  end
