// The promise behind the counts: every captured frame ends in exactly one outcome. Pure.

import { BY_NAME } from '../ui/names'
import type { ByReason, Counts } from '../api/types'

export interface CountsCheck {
  dropped: number
  /** captured minus everything it should equal; 0 when the counts add up. */
  unaccounted: number
}

/** Check captured = on time + late + dropped + pending. */
export function checkCounts(counts: Counts): CountsCheck {
  const dropped = Object.values(counts.dropped).reduce((sum, amount) => sum + amount, 0)
  return {
    dropped,
    unaccounted: counts.captured - (counts.on_time + counts.late + dropped + counts.pending),
  }
}

/** The amounts by reason that are misses: what the plan did not ask for is none. */
export function misses<Amount>(dropped: Readonly<Record<string, Amount>>): Record<string, Amount> {
  return Object.fromEntries(Object.entries(dropped).filter(([reason]) => reason !== 'plan'))
}

const MEANINGS: Readonly<Record<string, string>> = {
  plan: 'not asked for: the box asks for fewer frames than the camera captures; these are no misses',
  sender: 'not sent, because a newer one came first or the link or the source was too slow',
  queue: 'they waited too long behind other work',
  infeasible: 'too little time was left on arrival',
  invalid: 'not a usable JPEG',
  overload: 'more frames at the box than it can answer in time, or a server that it asks has too much to do',
  failed: 'the model failed on the batch',
  departed: 'the camera left before the answer',
  shutdown: 'the box was stopping',
  lost: 'sent, but never heard of again: the connection broke, or the camera stopped',
}

export interface DropLine {
  reason: string
  amount: number
  meaning: string
}

/** The reasons frames were dropped for, the most frequent first. */
export function dropLines(dropped: ByReason): DropLine[] {
  return Object.entries(dropped)
    .filter(([, amount]) => amount > 0)
    .sort(([a, x], [b, y]) => y - x || BY_NAME.compare(a, b))
    .map(([reason, amount]) => ({ reason, amount, meaning: MEANINGS[reason] ?? reason }))
}
