// How far back a chart can look, and how often it is worth asking again. Pure.

import { dayOf } from '../ui/format'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

export interface Range {
  /** As the API and the page's address name it. */
  key: string
  name: string
  span_ms: number
  /** About as often as a chart of that many steps can show anything new. */
  refresh_ms: number
}

export const RANGES: readonly Range[] = [
  { key: '1m', name: '1 min', span_ms: MINUTE_MS, refresh_ms: 2 * SECOND_MS },
  { key: '15m', name: '15 min', span_ms: 15 * MINUTE_MS, refresh_ms: 5 * SECOND_MS },
  { key: '1h', name: '1 h', span_ms: HOUR_MS, refresh_ms: 15 * SECOND_MS },
  { key: '6h', name: '6 h', span_ms: 6 * HOUR_MS, refresh_ms: MINUTE_MS },
  { key: '24h', name: '24 h', span_ms: DAY_MS, refresh_ms: 2 * MINUTE_MS },
  { key: '7d', name: '7 d', span_ms: 7 * DAY_MS, refresh_ms: 5 * MINUTE_MS },
  { key: '30d', name: '30 d', span_ms: 30 * DAY_MS, refresh_ms: 10 * MINUTE_MS },
]

const USUAL = RANGES[1] as Range

/** The range of that name; of any other name, or none, the shortest that shows all of a young camera, at most the usual one. */
export function rangeOf(key: string | undefined, age_ms = Infinity): Range {
  const young = RANGES.find(({ span_ms }) => span_ms >= age_ms && span_ms < USUAL.span_ms)
  return RANGES.find((range) => range.key === key) ?? young ?? USUAL
}

/** An instant as precisely as a range of that length needs it. */
export function instantText(at_ms: number, span_ms: number): string {
  const at = new Date(at_ms)
  const time = at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', ...(span_ms <= HOUR_MS && { second: '2-digit' }) })
  if (span_ms < DAY_MS) return time
  return `${dayOf(at)}, ${time}`
}
